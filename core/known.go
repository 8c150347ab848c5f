package core

import (
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// tokenCache holds tokens whose signature was right, since clients send the same one over
// and over, and verifying it takes a fifth of a request's time in core. What a token says
// never changes; whether it is valid is asked each time.
type tokenCache struct {
	mu     sync.RWMutex
	tokens *sieve.Cache[string, knownToken]
}

type knownToken struct {
	Token
	from, until time.Time // when it is valid
}

// maxKnown is the most tokens, each of about half a kilobyte.
const maxKnown = 1 << 15

// find returns what a token identifies if it is known, and valid at a moment.
func (c *tokenCache) find(compact string, now time.Time) (Token, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known := c.tokens.Get(compact)
	if known == nil || now.Before(known.from) || !now.Before(known.until) {
		return Token{}, false
	}
	return known.Token, true
}

// add adds a token that was verified.
func (c *tokenCache) add(compact string, token knownToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.Put(compact, token, 1)
}
