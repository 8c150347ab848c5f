package core

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestLegible(t *testing.T) {
	t.Parallel()

	f := func(text string, want bool) {
		t.Helper()
		testenv.Equal(t, isLegible(text), want, "isLegible(%+q)", text)
	}

	f("Steve", true)
	f("-", true)
	f("Zoë 日本語 한국어 עברית", true)
	f("", false)
	f(" \u00a0\u3000", false)
	f("\u0301", false)       // a combining accent alone
	f("\u2800", false)       // a blank Braille pattern
	f("\u3164", false)       // a Hangul filler
	f("\u200b", false)       // zero width space
	f("\u202e", false)       // right-to-left override
	f("e\u0301", true)       // an accent that has a letter
	f("a\u2028b", false)     // line separator
	f("a\u2029b", false)     // paragraph separator
	f("a\u200bb", false)     // and beside what is visible:
	f("abc\u202e", false)    // right-to-left override
	f("a\u2066b", false)     // left-to-right isolate
	f("a\u200eb", false)     // left-to-right mark
	f("\u0627\u061c", false) // Arabic letter mark
	f("a\u00adb", false)     // soft hyphen
	f("a\u034fb", false)     // combining grapheme joiner
	f("a\u2060b", false)     // word joiner
	f("a\u3164b", false)     // Hangul filler
	f("a\ufeffb", false)     // zero width no-break space
	f("a\U000e0041", false)  // a tag
	f("葛\U000e0100", false)  // a variation selector that is no emoji's
	f("\u0600\u0661", true)  // Arabic number sign, which is shown

	for _, emoji := range []string{
		"❤\ufe0f", "☺\ufe0e", "1\ufe0f\u20e3", "👩\u200d🚀", "👩🏽\u200d🚀", "🏳\ufe0f\u200d🌈", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪 👍🏿",
	} {
		f(emoji, true)
	}
	for _, broken := range []string{
		"a\ufe0f", "1\ufe0f", "👩\u200d", "\u200d🚀", "👩\u200da", "👩\u200d\u200d🚀", "❤\ufe0f\ufe0f", "❤\ufe00",
	} {
		f(broken, false)
	}

	// Between letters of scripts that use joiners.
	for _, joined := range []string{"می\u200cخواهم", "क्\u200dष", "র\u200d্য", "ක්\u200dර"} {
		f(joined, true)
	}
	for _, other := range []string{
		"a\u200cb", "日\u200d本", "می\u200c", "\u200cمی", "می\u200c\u200cخواهم", "a\u0301\u200c\u0301b",
	} {
		f(other, false)
	}
}
