package core

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/fault"
)

// defaultNames are the rule that holds unless settings say otherwise.
func defaultNames() PlayerLimits {
	return PlayerLimits{NamePattern: "^[A-Za-z0-9_]+$", NameMin: 3, NameMax: 16}
}

func TestPlayerNames(t *testing.T) {
	t.Parallel()

	names, err := NewPlayerNames(defaultNames())
	if err != nil {
		t.Fatal(err)
	}
	f := func(text, name, key string) {
		t.Helper()
		got, err := names.check("player_name", text)
		if got != (NewPlayer{Name: name, Key: key}) || (err == nil) != (name != "") {
			t.Errorf("check(%q) = %q, %v; want %q with the key %q", text, got, err, name, key)
		}
		if err != nil && len(fault.Of(err).Fields["player_name"]) != 1 {
			t.Errorf("check(%q): the fault %v does not name the field", text, err)
		}
	}

	f("Steve_99", "Steve_99", "steve_99")
	f(" Steve\t", "Steve", "steve")
	f("abc", "abc", "abc")
	f(strings.Repeat("A", 16), strings.Repeat("A", 16), strings.Repeat("a", 16))
	f("", "", "")
	f("ab", "", "")
	f("a b", "", "")
	f(strings.Repeat("A", 17), "", "")
	f("Steve-99", "", "")
	f("Zoë", "", "")
	f("\u212Aelvin", "", "") // the Kelvin sign folds to k, but is none
	f("Ste\nve", "", "")
	f("Ste\x00ve", "", "")
	f("Ste\xffve", "", "")
}

func TestPlayerNamesBySetting(t *testing.T) {
	t.Parallel()

	names, err := NewPlayerNames(PlayerLimits{NamePattern: `^[\p{L} ]+$`, NameMin: 1, NameMax: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := func(text string, want bool) {
		t.Helper()
		if got, err := names.check("name", text); (err == nil) != want {
			t.Errorf("check(%q) = %q, %v; want it allowed: %t", text, got, err, want)
		}
	}

	f("Ö", true)
	f("Zoë ß", false) // five characters
	f("Ä ö", true)
	f("Al3x", false)
	// No pattern lets control characters through.
	f("A\u0085B", false)
}

func TestPlayerSettingsAreNamed(t *testing.T) {
	t.Parallel()

	f := func(want string, change func(*PlayerLimits)) {
		t.Helper()
		limits := defaultNames()
		change(&limits)
		if _, err := NewPlayerNames(limits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error that names %s", limits, err, want)
		}
	}

	f("PLAYER_NAME_PATTERN", func(l *PlayerLimits) { l.NamePattern = "[" })
	f("PLAYER_NAME_MIN", func(l *PlayerLimits) { l.NameMin = 0 })
	f("PLAYER_NAME_MAX", func(l *PlayerLimits) { l.NameMax = 2 })
}
