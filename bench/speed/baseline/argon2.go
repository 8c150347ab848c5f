package baseline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"runtime"

	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/argon2"
)

// StartArgon2 starts this program again as a fasthttp server that answers with the argon2id hash of
// each request's body, with core's parameters, and does nothing else.
func StartArgon2(ctx context.Context, env Env) (*Server, error) {
	return startSelf(ctx, env, "argon2", argon2Program, func(address string) ([]string, error) { return []string{argon2Role, address}, nil })
}

func serveArgon2(address string) error {
	sem := make(chan struct{}, runtime.GOMAXPROCS(0)) // more at once would only slow each down, and core has the same limit
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		var salt [16]byte
		_, _ = rand.Read(salt[:]) // it never fails
		sem <- struct{}{}
		const passes, memory, lanes, length = 2, 19 * 1024, 1, 32
		hash := argon2.IDKey(rc.PostBody(), salt[:], passes, memory, lanes, length)
		<-sem
		rc.SetBodyString(hex.EncodeToString(hash))
	})
}
