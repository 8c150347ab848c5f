// Package settingstest tries every setting of a program with a wrong value, and the files
// that are made of its settings.
package settingstest

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/settings"
)

// Wrong is a value that a setting must not have.
type Wrong struct {
	Value string
	// Beside are other settings, as NAME=value, with which it is wrong.
	Beside []string
	// IsSecret says that no part of the value may be told.
	IsSecret bool
}

// parsers matches what Go's parsers say.
var parsers = regexp.MustCompile(`strconv\.|time: |netip\.|slog: |Parse[A-Z]|parse "|invalid syntax|error parsing|cannot parse|unknown unit|missing port|illegal base64`)

// Run tries every setting of a Config with a wrong value. The program that start starts
// with it must end with one line, which names the setting and an example of a right value.
// Settings of which no value is wrong are listed with the reason.
func Run[Config any](t *testing.T, prefix string, wrong map[string]Wrong, none map[string]string, start func(t *testing.T, environ []string) (said string)) {
	t.Helper()
	var names []string
	for _, s := range settings.List[Config](prefix) {
		names = append(names, s.Name)
		row, tried := wrong[s.Name]
		_, exempt := none[s.Name]
		if tried == exempt {
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
			said := start(t, append(slices.Clone(row.Beside), s.Name+"="+row.Value))
			row.judge(t, s, strings.TrimSuffix(said, "\n"))
		})
	}
	for name := range wrong {
		if !slices.Contains(names, name) {
			t.Errorf("%s has a wrong value, but is no setting", name)
		}
	}
	for name := range none {
		if !slices.Contains(names, name) {
			t.Errorf("%s has no wrong value, but is no setting", name)
		}
	}
}

// judge looks at what a program says of a setting.
func (w Wrong) judge(t *testing.T, s settings.Setting, said string) {
	t.Helper()
	if !strings.Contains(said, s.Name) || !strings.Contains(said, s.Name+"="+s.Example) || strings.Contains(said, "\n") {
		t.Errorf("it says %q; want one line that names %s=%s", said, s.Name, s.Example)
	}
	if found := parsers.FindString(said); found != "" {
		t.Errorf("it says %q, and %q is a parser's", said, found)
	}
	if told := strings.Contains(said, w.Value); w.Value != "" && told == w.IsSecret {
		t.Errorf("it says %q; the wrong value is told: %t", said, told)
	}
}

// Examples returns the examples of all settings of a Config as an environment. Those that
// a shell must fill in are.
func Examples[Config any](t *testing.T, prefix string) (environ []string) {
	t.Helper()
	for _, s := range settings.List[Config](prefix) {
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
