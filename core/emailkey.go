package core

import (
	"context"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/veneer-skins/veneer/shared/casefold"
)

// domains maps domains as browsers do, and refuses none (UTS 46, nontransitional).
var domains = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false))

// EmailKey returns the key by which e-mail addresses are compared: case does not matter, and a domain is
// the same in Unicode, in full-width letters and in Punycode. A domain that UTS 46 does not allow is
// compared as other texts are.
func EmailKey(address string) string {
	at := strings.LastIndexByte(address, '@')
	domain, err := domains.ToUnicode(address[at+1:])
	if at < 0 || err != nil {
		return casefold.Key(address)
	}
	return casefold.Key(address[:at+1] + domain)
}

// ASCIIAddress returns an e-mail address with a domain that is not ASCII in Punycode, as mail servers
// expect it.
func ASCIIAddress(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !strings.ContainsFunc(address[at:], func(r rune) bool { return r > unicode.MaxASCII }) {
		return address
	}
	domain, err := domains.ToASCII(address[at+1:])
	if err != nil {
		return address
	}
	return address[:at+1] + domain
}

// atSigns are the other forms of @ that input methods type.
var atSigns = strings.NewReplacer("\uff20", "@", "\ufe6b", "@")

// trimAddress cuts blanks and characters that cannot be seen off the ends of an address. An address without @ has its
// other forms.
func trimAddress(address string) string {
	address = strings.TrimFunc(address, func(r rune) bool { return unicode.IsSpace(r) || ignorable(r) })
	if !strings.Contains(address, "@") {
		address = atSigns.Replace(address)
	}
	return address
}

// emailKeys knows the keys of accounts.
type emailKeys interface {
	// HasEmailKey reports whether an account has the key.
	HasEmailKey(ctx context.Context, key string) (bool, error)
}

// accountKey returns the key of the account that an address stands for. Of two accounts whose addresses
// became equal when domains began to be mapped, one has kept its former key, and is found by that key: see
// the store's RekeyEmails.
func accountKey(ctx context.Context, store emailKeys, address string) (string, error) {
	address = trimAddress(address)
	key, former := EmailKey(address), casefold.Key(address)
	if former == key {
		return key, nil
	}
	if known, err := store.HasEmailKey(ctx, former); err != nil || known {
		return former, err
	}
	return key, nil
}
