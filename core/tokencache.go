package core

import (
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// tokenCache caches tokens with a verified signature: clients send the same token with every
// request, and verifying it takes a fifth of a request's time in core. The content of a token never
// changes; its validity is checked on every lookup.
type tokenCache struct {
	mu     sync.RWMutex
	tokens *sieve.Cache[string, cachedToken]
}

type cachedToken struct {
	Token
	validFrom, validUntil time.Time
}

// maxCachedTokens bounds the cache to about 16 MiB: a token takes about half a kilobyte.
const maxCachedTokens = 1 << 15

// get returns a cached token that is valid at a time.
func (c *tokenCache) get(compact string, now time.Time) (Token, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cached := c.tokens.Get(compact)
	if cached == nil || now.Before(cached.validFrom) || !now.Before(cached.validUntil) {
		return Token{}, false
	}
	return cached.Token, true
}

// add caches a token that was verified.
func (c *tokenCache) add(compact string, token cachedToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.Put(compact, token, 1)
}
