package settings_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/settings"
)

type config struct {
	Listen  string         `env:"LISTEN" envDefault:"127.0.0.1:1" help:"where"`
	Secret  string         `env:"SECRET,required,notEmpty" help:"what"`
	Timeout time.Duration  `env:"TIMEOUT" envDefault:"5s" help:"how long"`
	Log     logging.Config `envPrefix:"LOG_"`
}

func TestRead(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := settings.Read[config]("X_", []string{"X_SECRET_FILE=" + file, "X_TIMEOUT=2s", "X_LOG_LEVEL=warn", "OTHER=1"})
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		Listen: "127.0.0.1:1", Secret: "from a file", Timeout: 2 * time.Second,
		Log: logging.Config{Level: slog.LevelWarn, Format: "json", Requests: 0.01},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestReadNamesTheWrongSetting(t *testing.T) {
	t.Parallel()

	f := func(want string, environ ...string) {
		t.Helper()
		_, err := settings.Read[config]("X_", environ)
		if err == nil {
			t.Fatalf("%q is accepted", environ)
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want one line with %q", environ, err, want)
		}
	}

	f("X_SECRET must be set")
	f("X_SECRET must not be empty", "X_SECRET=")
	f("X_TIMEOUT is not understood", "X_SECRET=s", "X_TIMEOUT=soon")
	f("X_LOG_LEVEL is not understood", "X_SECRET=s", "X_LOG_LEVEL=loud")
	f("X_SECRET_FILE cannot be read", "X_SECRET_FILE=/nowhere/secret")
	f("both set", "X_SECRET=s", "X_SECRET_FILE=/nowhere/secret")
}

func TestUnknown(t *testing.T) {
	t.Parallel()

	if err := settings.Unknown[config]("X_", []string{
		"X_SECRET_FILE=f", "X_LOG_LEVEL=warn", "XYZ=1", "OTHER=1",
		"X_SERVICE_HOST=10.0.0.1", "X_SERVICE_PORT=80", "X_SERVICE_PORT_HTTP=80", "X_PORT=tcp://10.0.0.1:80", "X_PORT_80_TCP_ADDR=10.0.0.1",
	}); err != nil {
		t.Error(err)
	}
	if err := settings.Unknown[config]("X_", []string{"X_LISTN=127.0.0.1:2"}); err == nil || !strings.Contains(err.Error(), "X_LISTN") {
		t.Errorf("a slip of the pen: %v; want an error that names it", err)
	}
}

func TestHelpListsEverySetting(t *testing.T) {
	t.Parallel()

	var help strings.Builder
	if err := settings.Help[config](&help, "X_"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"X_LISTEN", "127.0.0.1:1", "X_SECRET", "(required)", "X_TIMEOUT", "how long", "X_LOG_LEVEL", "X_LOG_FORMAT"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, help.String())
		}
	}
}
