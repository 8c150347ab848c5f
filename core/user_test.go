package core

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestEmail(t *testing.T) {
	t.Parallel()

	f := func(text, want string) {
		t.Helper()
		got, err := validateEmail(text)
		testenv.Equal(t, got, want, "email(%q)", text)
		testenv.Equal(t, err == nil, want != "", "email(%q) allows it (%v)", text, err)
	}

	f("steve@example.com", "steve@example.com")
	f("  Steve+skins@Example.COM\t", "Steve+skins@Example.COM")
	f("zoë@exämple.com", "zoë@exämple.com")
	f("a@"+strings.Repeat("b", 252), "a@"+strings.Repeat("b", 252))
	f("\ufeffsteve@example.com\u200b\u3000", "steve@example.com")
	f("❤\ufe0f@example.com", "❤\ufe0f@example.com")
	for _, refused := range []string{
		"", "steve", "@example.com", "steve@", "steve@example.com, alex@example.com", "Steve <steve@example.com>",
		"<steve@example.com>", "ste ve@example.com", "steve@exam\nple.com", "steve@example.com\x00", "steve\xff@example.com",
		"ste\u200bve@example.com", "steve@exam\u202eple.com", "a@" + strings.Repeat("b", 253),
	} {
		f(refused, "")
	}
}

func TestName(t *testing.T) {
	t.Parallel()

	f := func(text, want string) {
		t.Helper()
		got, err := validateName("nickname", text)
		testenv.Equal(t, got, want, "name(%q)", text)
		testenv.Equal(t, err == nil, want != "", "name(%q) allows it (%v)", text, err)
	}

	f("Steve", "Steve")
	f(" \t Zoë 🦊 \u00a0\n", "Zoë 🦊")
	f(strings.Repeat("ä", 64), strings.Repeat("ä", 64))
	f(" "+strings.Repeat("x", 64)+" ", strings.Repeat("x", 64))
	for _, refused := range []string{
		strings.Repeat("x", 65), "", " \t ", "a\nb", "a\tb", "a\x00b", "a\u0085b", "a\x7fb", "a\xffb", "\u200b", "a\u202eb",
	} {
		f(refused, "")
	}
	title := testenv.Must(validateLine("title", " שלום\u200f! "))(t)
	testenv.Equal(t, title, "שלום\u200f!", "a title, which is no name and may have controls of direction")
}

func TestFieldFaultsAreCollected(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	var wrong fieldFaults
	wrong.add(nil)
	testenv.Is(t, wrong.fault(), nil, "the fault when nothing is wrong")
	wrong.add(fault.Field("email", "This is no e-mail address."))
	wrong.add(nil)
	wrong.add(fault.Field("password", "It is too short."))
	wrong.add(fault.Field("email", "It is too long."))
	want := map[string][]string{"email": {"This is no e-mail address.", "It is too long."}, "password": {"It is too short."}}
	cmptest.Same(t, fault.Of(wrong.fault()).Fields, want, "the fields")

	wrong.add(fault.New(fault.TooLarge, "The file is too large."))
	wrong.add(fault.Field("name", "It is too long."))
	testenv.Equal(t, fault.KindOf(wrong.fault()), fault.TooLarge, "the kind after a fault of another kind")
}
