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
	tokens *sieve.Cache[string, cachedToken]
}

type cachedToken struct {
	Token
	validFrom, validUntil time.Time // when it is valid
}

// maxCachedTokens is the most tokens, each of about half a kilobyte.
const maxCachedTokens = 1 << 15

// get returns what a token identifies if it is known, and valid at a moment.
func (c *tokenCache) get(compact string, now time.Time) (Token, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cached := c.tokens.Get(compact)
	if cached == nil || now.Before(cached.validFrom) || !now.Before(cached.validUntil) {
		return Token{}, false
	}
	return cached.Token, true
}

// add adds a token that was verified.
func (c *tokenCache) add(compact string, token cachedToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.Put(compact, token, 1)
}
