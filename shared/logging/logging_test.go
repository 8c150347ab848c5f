package logging_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestJSONLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := logging.New(&out, logging.Config{Level: slog.LevelInfo, Format: "json"})
	log.Debug("not worth a line")
	log.Info("listening", "address", "127.0.0.1:8080")
	log.Error("request failed", "error", "first\nsecond")

	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("two events became %d lines:\n%s", len(lines), out.String())
	}
	var event struct{ Level, Msg, Address string }
	testenv.Do(t, json.Unmarshal([]byte(lines[0]), &event))
	testenv.Check(t, event.Level == "INFO" && event.Msg == "listening" && event.Address == "127.0.0.1:8080",
		"the first line is %s", lines[0])
}

func TestText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := logging.New(&out, logging.Config{Level: slog.LevelDebug, Format: "text"})
	log.Debug("connection error")
	testenv.Contains(t, out.String(), `level=DEBUG msg="connection error"`, "the line")
}
