// Package configtest tests every setting of a program with an invalid value, and the files
// that are generated from its settings.
package configtest

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// InvalidValue is an invalid value of a setting.
type InvalidValue struct {
	Value string
	// Environ are other settings, as NAME=value, with which it is invalid.
	Environ []string
	// IsSecret says that the error must not contain the value.
	IsSecret bool
}

// parserMessage matches messages of Go's parsers.
var parserMessage = regexp.MustCompile(`strconv\.|time: |netip\.|slog: |Parse[A-Z]|parse "|invalid syntax|error parsing|cannot parse|unknown unit|missing port|illegal base64`)

// Run starts a program with an invalid value of each setting of a Config. start must return
// its output, which must be one line with the name of the setting and an example of a valid
// value. Settings without invalid values are in exempt, with the reason.
func Run[Config any](t *testing.T, prefix string, invalid map[string]InvalidValue, exempt map[string]string, start func(t *testing.T, environ []string) (output string)) {
	t.Helper()
	var names []string
	for _, s := range config.List[Config](prefix) {
		names = append(names, s.Name)
		row, tried := invalid[s.Name]
		_, isExempt := exempt[s.Name]
		testenv.Check(t, tried != isExempt,
			"%s must have either an invalid value here or a reason why it has none", s.Name)
		testenv.Check(t, s.Example != "", "%s has no example", s.Name)
		if !tried {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			output := start(t, append(slices.Clone(row.Environ), s.Name+"="+row.Value))
			row.check(t, s, strings.TrimSuffix(output, "\n"))
		})
	}
	for name := range invalid {
		testenv.Check(t, slices.Contains(names, name), "%s has an invalid value, but is not a setting", name)
	}
	for name := range exempt {
		testenv.Check(t, slices.Contains(names, name), "%s is exempt, but is not a setting", name)
	}
}

// check checks the output of a program for a setting.
func (i InvalidValue) check(t *testing.T, s config.Setting, output string) {
	t.Helper()
	if !strings.Contains(output, s.Name) || !strings.Contains(output, s.Name+"="+s.Example) || strings.Contains(output, "\n") {
		t.Errorf("the output is %q; want one line with %s=%s", output, s.Name, s.Example)
	}
	parserText := parserMessage.FindString(output)
	testenv.Check(t, parserText == "", "the output is %q; %q is a message of a parser", output, parserText)
	if revealed := strings.Contains(output, i.Value); i.Value != "" && revealed == i.IsSecret {
		t.Errorf("the output is %q; it contains the invalid value: %t", output, revealed)
	}
}

// Examples returns the examples of all settings of a Config as an environment. Shell commands
// in them are run.
func Examples[Config any](t *testing.T, prefix string) (environ []string) {
	t.Helper()
	for _, s := range config.List[Config](prefix) {
		value := s.Example
		if strings.Contains(value, "$(") {
			filled, err := exec.CommandContext(t.Context(), "sh", "-c", `printf %s "`+value+`"`).Output() //nolint:gosec // examples of the program itself
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			value = string(filled)
		}
		environ = append(environ, s.Name+"="+value)
	}
	return environ
}
