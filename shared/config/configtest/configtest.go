// Package settingstest tries every setting of a program with a wrong value, and the files
// that are made of its settings.
package configtest

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/config"
)

// InvalidValue is a value that a setting must not have.
type InvalidValue struct {
	Value string
	// Environ are other settings, as NAME=value, with which it is wrong.
	Environ []string
	// IsSecret says that no part of the value may be told.
	IsSecret bool
}

// parserMessage matches what Go's parsers say.
var parserMessage = regexp.MustCompile(`strconv\.|time: |netip\.|slog: |Parse[A-Z]|parse "|invalid syntax|error parsing|cannot parse|unknown unit|missing port|illegal base64`)

// Run tries every setting of a Config with a wrong value. The program that start starts
// with it must end with one line, which names the setting and an example of a right value.
// Settings of which no value is wrong are listed with the reason.
func Run[Config any](t *testing.T, prefix string, invalid map[string]InvalidValue, exempt map[string]string, start func(t *testing.T, environ []string) (output string)) {
	t.Helper()
	var names []string
	for _, s := range config.List[Config](prefix) {
		names = append(names, s.Name)
		row, tried := invalid[s.Name]
		_, isExempt := exempt[s.Name]
		if tried == isExempt {
			t.Errorf("%s must either have a wrong value here, or a reason why none is wrong", s.Name)
		}
		if s.Example == "" {
			t.Errorf("%s has no example", s.Name)
		}
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
		if !slices.Contains(names, name) {
			t.Errorf("%s has a wrong value, but is no setting", name)
		}
	}
	for name := range exempt {
		if !slices.Contains(names, name) {
			t.Errorf("%s has no wrong value, but is no setting", name)
		}
	}
}

// check looks at what a program says of a setting.
func (w InvalidValue) check(t *testing.T, s config.Setting, output string) {
	t.Helper()
	if !strings.Contains(output, s.Name) || !strings.Contains(output, s.Name+"="+s.Example) || strings.Contains(output, "\n") {
		t.Errorf("it says %q; want one line that names %s=%s", output, s.Name, s.Example)
	}
	if parserText := parserMessage.FindString(output); parserText != "" {
		t.Errorf("it says %q, and %q is a parser's", output, parserText)
	}
	if revealed := strings.Contains(output, w.Value); w.Value != "" && revealed == w.IsSecret {
		t.Errorf("it says %q; the wrong value is told: %t", output, revealed)
	}
}

// Examples returns the examples of all settings of a Config as an environment. Those that
// a shell must fill in are.
func Examples[Config any](t *testing.T, prefix string) (environ []string) {
	t.Helper()
	for _, s := range config.List[Config](prefix) {
		value := s.Example
		if strings.Contains(value, "$(") {
			filled, err := exec.CommandContext(t.Context(), "sh", "-c", `printf %s "`+value+`"`).Output() //nolint:gosec // our own examples
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			value = string(filled)
		}
		environ = append(environ, s.Name+"="+value)
	}
	return environ
}
