package cli

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/testenv"
)

type unknownConfig struct {
	Listen string         `env:"LISTEN" envDefault:"127.0.0.1:1" help:"where"`
	Secret string         `env:"SECRET" help:"what"`
	Log    logging.Config `envPrefix:"LOG_"`
}

func TestCheckUnknown(t *testing.T) {
	t.Parallel()
	if err := checkUnknown[unknownConfig]("x", "X_", []string{
		"X_SECRET_FILE=f", "X_LOG_LEVEL=warn", "XYZ=1", "OTHER=1",
		"X_SERVICE_HOST=10.0.0.1", "X_SERVICE_PORT=80", "X_SERVICE_PORT_HTTP=80", "X_PORT=tcp://10.0.0.1:80", "X_PORT_80_TCP_ADDR=10.0.0.1",
	}); err != nil {
		t.Error(err)
	}
	f := func(name, want string) {
		t.Helper()
		err := checkUnknown[unknownConfig]("x", "X_", []string{name + "=1"})
		testenv.Check(t, err != nil && err.Error() == want, "%s: %v; want %q", name, err, want)
	}
	f("X_LISTN", "X_LISTN is no setting; did you mean X_LISTEN?")
	f("X_SECRETFILE", "X_SECRETFILE is no setting; did you mean X_SECRET_FILE?")
	f("X_COLOUR", "X_COLOUR is no setting; x help lists them all")
}
