package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
)

// actorHandler is a handler of what an owner or administrators may do.
type actorHandler func(context.Context, *fasthttp.RequestCtx, core.Actor) error

// requireAdmin wraps a handler of administrators: others get 403. The domain decides on which users
// and things an administrator may act.
func (s *Server) requireAdmin(h actorHandler) fasthttp.RequestHandler {
	return s.requireUser(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		by, err := core.NewActor(caller.User, s.opts.Proxies.ClientIP(rc))
		if err != nil {
			return err
		}
		return h(ctx, rc, by)
	})
}

// requireOwner wraps a handler of what signed-in users may do with their own things, and limits its
// rate as limitChanges does.
func (s *Server) requireOwner(h actorHandler) fasthttp.RequestHandler {
	return s.requireUser(s.limitChanges(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		by := caller.Owner()
		by.From = s.opts.Proxies.ClientIP(rc)
		return h(ctx, rc, by)
	}))
}

// changeByID returns a handler that reads a form, changes the thing whose ID is in the path, and
// responds with it.
func changeByID[ID ~int64, V, T, B any](
	param, message string, read func(*decode.Form) V, change func(context.Context, core.Actor, ID, V) (T, error), toJSON func(T) B,
) actorHandler {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		id, err := pathInteger(rc, param)
		if err != nil {
			return err
		}
		f := decode.ParseForm(rc)
		value := read(f)
		if err := f.Err(); err != nil {
			return err
		}
		changed, err := change(ctx, by, ID(id), value)
		if err != nil {
			return err
		}
		return writeOK(rc, message, toJSON(changed))
	}
}

// deleteByID returns a handler that deletes the thing whose ID is in the path.
func deleteByID[ID ~int64](param, message string, remove func(context.Context, core.Actor, ID) error) actorHandler {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		id, err := pathInteger(rc, param)
		if err != nil {
			return err
		}
		if err := remove(ctx, by, ID(id)); err != nil {
			return err
		}
		return writeOK(rc, message, nil)
	}
}

// str returns a function that reads a required text.
func str(name string) func(*decode.Form) string {
	return func(f *decode.Form) string { return f.Str(name) }
}

// integer returns a function that reads a required integer.
func integer[V ~int64](name string) func(*decode.Form) V {
	return func(f *decode.Form) V { return V(f.RequiredInteger(name)) }
}

// requiredBool returns a function that reads a required boolean.
func requiredBool(name string) func(*decode.Form) bool {
	return func(f *decode.Form) bool { return f.RequiredBool(name) }
}
