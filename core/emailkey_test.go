package core

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestEmailKey(t *testing.T) {
	t.Parallel()
	f := func(a, b string, want bool) {
		t.Helper()
		testenv.Equal(t, EmailKey(a) == EmailKey(b), want, "%q and %q are equal", a, b)
		for _, address := range []string{a, b} {
			testenv.Equal(t, EmailKey(EmailKey(address)), EmailKey(address), "the key of the key of %q", address)
		}
	}
	f("Demo@Example.COM", "demo@example.com", true)
	f("a@b\u00fccher.example", "a@xn--bcher-kva.example", true)
	f("a@b\u00fccher.example", "A@XN--BCHER-KVA.EXAMPLE", true)
	f("a@bu\u0308cher.example", "a@b\u00fccher.example", true)
	f("a@\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45.com", "a@example.com", true) // full-width letters
	f("a@example\u3002com", "a@example.com", true)                               // an ideographic full stop
	f("a@stra\u00dfe.example", "a@strasse.example", false)
	f("\uff41@example.com", "a@example.com", false) // the local part is the mail server's
	f("a@example.com", "a@example.org", false)
	f("a@bad..example", "a@bad.example", false)
	f("demo", "demo@", false)

	testenv.Equal(t, trimAddress("\u3000a\uff20example.com\u200b"), "a@example.com", "an address of an input method")
	for address, want := range map[string]string{
		"a@b\u00fccher.example": "a@xn--bcher-kva.example", "a@example.com": "a@example.com", "b\u00fc@example.com": "b\u00fc@example.com", "demo": "demo",
	} {
		testenv.Equal(t, ASCIIAddress(address), want, "ASCIIAddress(%q)", address)
	}
}
