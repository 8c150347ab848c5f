package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// administrators is a route for administrators. What they may do to whom the
// domain decides.
func (s *Server) administrators(h func(context.Context, *fasthttp.RequestCtx, core.Actor) error) fasthttp.RequestHandler {
	return s.signedIn(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		by, err := core.NewActor(caller.User, s.door.Proxies.Client(rc))
		if err != nil {
			return err
		}
		return h(ctx, rc, by)
	})
}

// foundBody is a page of what a search has found as the API writes it.
type foundBody[T any] struct {
	PerPage           int  `json:"per_page"`
	From              int  `json:"from"` // number of the first item, 0 on an empty page
	To                int  `json:"to"`   // number of the last item, 0 on an empty page
	Total             int  `json:"total"`
	TotalIsLowerBound bool `json:"total_is_lower_bound"`
	CurrentPage       int  `json:"current_page"`
	LastPage          int  `json:"last_page"`
	Data              []T  `json:"data"`
}

// toFoundBody writes a page. The last one may be no further behind than one of a number.
func toFoundBody[T, B any](found core.Page[T], page, perPage, last int, toBody func(T) B) foundBody[B] {
	reach := found.Total
	if found.More {
		reach = core.MaxCounted
	}
	body := foundBody[B]{
		PerPage: perPage, Total: found.Total, TotalIsLowerBound: found.More, CurrentPage: page,
		LastPage: min(last, max(1, (reach+perPage-1)/perPage)),
		Data:     make([]B, len(found.Items)),
	}
	for i, item := range found.Items {
		body.Data[i] = toBody(item)
	}
	if len(found.Items) > 0 {
		body.From = (page-1)*perPage + 1
		body.To = body.From + len(found.Items) - 1
	}
	return body
}

// foundPage reads which page of a search is wanted.
func (f *fields) foundPage() (page, perPage int) {
	return int(f.integer("page", 1)), int(f.integer("perPage", core.DefaultSearchPerPage))
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
