package configtest

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

type envFileConfig struct {
	Listen  string `env:"LISTEN" envDefault:"127.0.0.1:1" help:"where"`
	Secret  string `env:"SECRET,required,notEmpty" help:"what"`
	Wait    string `env:"WAIT" envDefault:"0s" help:"a meaning that is so long that it has to be broken into two lines, as this one is, which has 97 characters"`
	Pattern string `env:"PATTERN" envDefault:"a$" help:"which"`
	From    string `env:"FROM" help:"from where"`
}

func TestWriteEnvFile(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	defaults, external := map[string]string{"X_WAIT": "4s"}, map[string]string{"X_SECRET": "a file has it"}
	testenv.Do(t, writeEnvFile[envFileConfig](&file, "X_", defaults, external))
	want := `# Settings of x for docker-compose.yml. Copy this file to x.env beside it, and take the #
# from the settings that you change. Each has the value here that it has without its line.
# A value with a space or one of $ # " \ is put in single quotes.

# where
#X_LISTEN=127.0.0.1:1

# what
# X_SECRET is not set here: a file has it

# a meaning that is so long that it has to be broken into two lines, as this one is, which
# has 97 characters
#X_WAIT=4s

# which
#X_PATTERN='a$'

# from where
#X_FROM=
`
	cmptest.Same(t, file.String(), want, "the file")
}

func TestWriteEnvFileNamesInvalidSetting(t *testing.T) {
	t.Parallel()
	f := func(want string, defaults, external map[string]string) {
		t.Helper()
		testenv.ErrorHas(t, writeEnvFile[envFileConfig](&strings.Builder{}, "X_", defaults, external), want,
			"writeEnvFile")
	}

	f("X_SECRET", nil, nil)
	f("X_GONE", map[string]string{"X_GONE": "1"}, map[string]string{"X_SECRET": "a file has it"})
	f("X_GONE", nil, map[string]string{"X_SECRET": "a file has it", "X_GONE": "nowhere"})
}
