package logging_test

import (
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/logging"
)

func TestJSONLines(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	log, err := logging.New(&out, logging.Config{Level: slog.LevelInfo, Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("not worth a line")
	log.Info("listening", "address", "127.0.0.1:8080")
	log.Error("request failed", "error", "first\nsecond")

	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("two events became %d lines:\n%s", len(lines), out.String())
	}
	var event struct{ Level, Msg, Address string }
	if err := json.Unmarshal([]byte(lines[0]), &event); err != nil {
		t.Fatal(err)
	}
	if event.Level != "INFO" || event.Msg != "listening" || event.Address != "127.0.0.1:8080" {
		t.Errorf("the first line is %s", lines[0])
	}
}

func TestText(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	log, err := logging.New(&out, logging.Config{Level: slog.LevelDebug, Format: "text"})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("connection error")
	if !strings.Contains(out.String(), `level=DEBUG msg="connection error"`) {
		t.Errorf("the line is %q", out.String())
	}
}

func TestSampleRateRange(t *testing.T) {
	t.Parallel()

	f := func(share float64, accepted bool) {
		t.Helper()
		_, err := logging.New(nil, logging.Config{Format: "json", SampleRate: share})
		if (err == nil) != accepted || err != nil && !strings.Contains(err.Error(), "LOG_SAMPLE_RATE") {
			t.Errorf("the share %v: %v; want it accepted: %t, or the setting named", share, err, accepted)
		}
	}

	f(0, true)
	f(0.01, true)
	f(1, true)
	f(-0.01, false)
	f(1.01, false)
	f(math.NaN(), false)
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()

	if _, err := logging.New(nil, logging.Config{Format: "xml"}); err == nil || !strings.Contains(err.Error(), "LOG_FORMAT") {
		t.Errorf("the format xml: %v; want an error that names the setting", err)
	}
}
