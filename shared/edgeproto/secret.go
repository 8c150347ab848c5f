package edgeproto

import (
	"fmt"
	"strings"
)

// minSecretLength is the minimum length of a secret, in bytes.
const minSecretLength = 16

// Secrets returns the secrets that core accepts from edges, trimmed. Each must be long enough
// not to be guessed, and of printable ASCII without spaces, since it is sent as a bearer
// token. The error contains no secret.
func Secrets(secrets []string) ([]string, error) {
	trimmed := make([]string, len(secrets))
	for i, secret := range secrets {
		trimmed[i] = strings.TrimSpace(secret)
		if len(trimmed[i]) < minSecretLength || strings.ContainsFunc(trimmed[i], func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("secret number %d is not %d or more characters of printable ASCII without spaces", i+1, minSecretLength)
		}
	}
	return trimmed, nil
}
