package rivals

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"runtime"

	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/argon2"
)

// StartHash starts this program again, as a fasthttp server that answers with the argon2id
// hash of each request's body, as core has passwords hashed, and does nothing else.
func StartHash(ctx context.Context, place Place) (*Server, error) {
	return startSelf(ctx, place, "hash", hashProgram, func(address string) ([]string, error) { return []string{hashRole, address}, nil })
}

func serveHash(address string) error {
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)) // more at once take longer for each, and core has no more, either
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		var salt [16]byte
		_, _ = rand.Read(salt[:]) // it never fails
		slots <- struct{}{}
		const passes, memory, lanes, length = 2, 19 * 1024, 1, 32
		hash := argon2.IDKey(rc.PostBody(), salt[:], passes, memory, lanes, length)
		<-slots
		rc.SetBodyString(hex.EncodeToString(hash))
	})
}
