package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// administrators is a route for administrators. What they may do to whom the
// domain decides.
func (s *Server) administrators(h func(context.Context, *fasthttp.RequestCtx, core.Authority) error) fasthttp.RequestHandler {
	return s.signedIn(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		by, err := core.NewAuthority(caller.User, s.door.Proxies.Client(rc))
		if err != nil {
			return err
		}
		return h(ctx, rc, by)
	})
}

// id returns the id in a field, 0 when the field is absent.
func (f *fields) id(name string) int64 {
	n := f.optionalInteger(name)
	switch {
	case n == nil:
		return 0
	case *n < 1:
		f.flaw(name, "The field %s must be at least 1.", name)
	}
	return *n
}
