package core

import (
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestPlayerNames(t *testing.T) {
	t.Parallel()

	names := testenv.Must(NewPlayerNames(PlayerLimits{NamePattern: defaultPattern, NameMin: 3, NameMax: 16}))(t)
	f := func(text, name, key string) {
		t.Helper()
		got, err := names.check("player_name", text)
		testenv.Check(t, got == (NewPlayer{Name: name, Key: key}) && (err == nil) == (name != ""),
			"check(%q) = %q, %v; want %q with the key %q", text, got, err, name, key)
		testenv.Check(t, err == nil || len(fault.Of(err).Fields["player_name"]) == 1,
			"check(%q): the fault %v does not name the field", text, err)
	}

	f("Steve_99", "Steve_99", "steve_99")
	f(" Steve\t", "Steve", "steve")
	f("abc", "abc", "abc")
	f(strings.Repeat("A", 16), strings.Repeat("A", 16), strings.Repeat("a", 16))
	f("\u212Aelvin", "", "") // the Kelvin sign folds to k, but is not allowed
	for _, refused := range []string{
		"", "ab", "a b", strings.Repeat("A", 17), "Steve-99", "Zoë", "Ste\nve", "Ste\x00ve", "Ste\xffve",
	} {
		f(refused, "", "")
	}
}

func TestPlayerNamesBySetting(t *testing.T) {
	t.Parallel()

	names := testenv.Must(NewPlayerNames(PlayerLimits{NamePattern: `^[\p{L} ]+$`, NameMin: 1, NameMax: 4}))(t)
	f := func(text string, want bool) {
		t.Helper()
		got, err := names.check("name", text)
		testenv.Equal(t, err == nil, want, "check(%q) allows it: %q, %v", text, got, err)
	}

	f("Ö", true)
	f("Zoë ß", false) // five characters
	f("Ä ö", true)
	f("Al3x", false)
	// No pattern allows control characters.
	f("A\u0085B", false)
}

// Edges look up no name with more bytes. Most Han letters have three, rare ones four.
func TestLongestPlayerName(t *testing.T) {
	t.Parallel()

	names := testenv.Must(NewPlayerNames(PlayerLimits{NamePattern: `\p{Han}+`, NameMin: 1, NameMax: MaxName}))(t)
	longest := strings.Repeat("𠮷", MaxName)
	if got, err := names.check("name", longest); err != nil || got.Name != longest || len(got.Key) != edgeproto.MaxNameBytes {
		t.Errorf("check(%s) = %q, %v; want it allowed, with a key of %d bytes", longest, got, err, edgeproto.MaxNameBytes)
	}
}

// Whatever the pattern, player names are legible and edges can be asked for them.
func TestPlayerNamesOfAnyPattern(t *testing.T) {
	t.Parallel()

	names := testenv.Must(NewPlayerNames(PlayerLimits{NamePattern: ".+", NameMin: 1, NameMax: 16}))(t)
	f := func(text, message string) {
		t.Helper()
		_, err := names.check("name", text)
		if (err == nil) != (message == "") || err != nil && !strings.Contains(fault.Of(err).Message, message) {
			t.Errorf("check(%+q): %v; want %q", text, err, message)
		}
	}

	for _, text := range []string{"Zoë & Co.", "a.b", "png", "x.pngs", "a\\b", "می\u200cخواهم"} {
		f(text, "")
	}
	for _, text := range []string{"a/b", "/", "a?b", "a#b", "100%", "%41", ".", "..", ".x", "x.png", "x.PNG", "x.webp", "x.Json", "a.b.json"} {
		f(text, "has none of / ? # %, does not begin with a dot, and does not end in .png, .webp, .json")
	}
	for _, text := range []string{"\u200b", "abc\u202e", "\u3164"} {
		f(text, "visible")
	}
}

// The message of a rejected name says which names are allowed.
func TestRejectedNameMessages(t *testing.T) {
	t.Parallel()

	f := func(limits PlayerLimits, want string) {
		t.Helper()
		names := testenv.Must(NewPlayerNames(limits))(t)
		for _, text := range []string{"", strings.Repeat("a", 65), "a\x00b", "-----"} {
			_, err := names.check("name", text)
			testenv.Equal(t, fault.Of(err).Message, want, "what %+v say of %q", limits, text)
		}
	}

	const byDefault = "[A-Za-z0-9_]+"
	f(PlayerLimits{NamePattern: byDefault, NameMin: 3, NameMax: 16}, "A player name has 3 to 16 characters: letters A to Z, digits and underscores.")
	f(PlayerLimits{NamePattern: byDefault, NameMin: 8, NameMax: 8}, "A player name has exactly 8 characters: letters A to Z, digits and underscores.")
	f(PlayerLimits{NamePattern: `[\p{L} ]+`, NameMin: 1, NameMax: 4}, `A player name has 1 to 4 characters and matches the regular expression [\p{L} ]+`)
	f(PlayerLimits{NamePattern: `[\p{L} ]+`, NameAllowed: " letters and spaces. ", NameMin: 1, NameMax: 4}, "A player name has 1 to 4 characters: letters and spaces.")
}

func TestNicknameMessages(t *testing.T) {
	t.Parallel()

	for _, text := range []string{" ", "a\nb", "a\xff", strings.Repeat("ä", 65)} {
		_, err := validateName("nickname", text)
		const want = "A nickname has 1 to 64 characters, without line breaks and other control characters."
		testenv.Equal(t, fault.Of(err).Message, want, "name(%q)", text)
	}
	got := testenv.Must(validateName("nickname", " "+strings.Repeat("ä", 64)))(t)
	testenv.Equal(t, got, strings.Repeat("ä", 64), "64 characters")
}

func TestPlayerLimitErrorsNameTheSetting(t *testing.T) {
	t.Parallel()

	f := func(name, value string) {
		t.Helper()
		limits, err := config.Read[PlayerLimits]("PLAYER_", []string{name + "=" + value})
		if err == nil {
			_, err = NewPlayerNames(limits)
		}
		testenv.ErrorHas(t, err, name+" ", "%s=%s", name, value)
	}

	f("PLAYER_NAME_PATTERN", "[")
	f("PLAYER_NAME_MIN", "0")
	f("PLAYER_NAME_MAX", "0")
	f("PLAYER_NAME_MAX", strconv.Itoa(MaxName+1))
}
