package mapping

import (
	"fmt"
	"strings"
)

// minSecret is the least length of a secret.
const minSecret = 16

// Secrets returns a ring of secrets that edges may show core, each trimmed. The
// error names no secret. One must be long enough not to be guessed, and of
// printable ASCII without spaces, since it travels as a bearer token.
func Secrets(ring []string) ([]string, error) {
	trimmed := make([]string, len(ring))
	for i, secret := range ring {
		trimmed[i] = strings.TrimSpace(secret)
		if len(trimmed[i]) < minSecret || strings.ContainsFunc(trimmed[i], func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("the secret in place %d is not %d or more characters of printable ASCII without spaces", i+1, minSecret)
		}
	}
	return trimmed, nil
}
