package core

import (
	"sync"
	"time"
)

// knownTokens remembers tokens whose signature was right, since clients send the
// same one over and over, and reading it takes a fifth of a request's time in
// core. What a token says never changes; whether it is valid is asked each time. There are two generations: a token that is used moves into the young one,
// and when that is full, the old one is forgotten.
type knownTokens struct {
	mu         sync.Mutex
	young, old map[string]knownToken
}

type knownToken struct {
	Token
	from, until time.Time // when it is valid
}

// maxKnown is the most tokens of a generation, each of about half a kilobyte.
const maxKnown = 1 << 14

// find returns what a token identifies if it is known, and valid at a moment.
func (k *knownTokens) find(compact string, now time.Time) (Token, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.young[compact]
	if !ok {
		if known, ok = k.old[compact]; ok {
			k.put(compact, known)
		}
	}
	return known.Token, ok && !now.Before(known.from) && now.Before(known.until)
}

// remember remembers a token that was verified.
func (k *knownTokens) remember(compact string, token knownToken) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(compact, token)
}

func (k *knownTokens) put(compact string, token knownToken) {
	if k.young == nil || len(k.young) >= maxKnown {
		k.young, k.old = map[string]knownToken{}, k.young
	}
	k.young[compact] = token
}
