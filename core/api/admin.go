package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// requireAdmin wraps a handler of administrators: others get 403. The domain decides on which users
// and things an administrator may act.
func (s *Server) requireAdmin(h func(context.Context, *fasthttp.RequestCtx, core.Actor) error) fasthttp.RequestHandler {
	return s.requireUser(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		by, err := core.NewActor(caller.User, s.opts.Proxies.ClientIP(rc))
		if err != nil {
			return err
		}
		return h(ctx, rc, by)
	})
}

// searchPageJSON is a page of search results. Its total is counted up to core.MaxCounted only.
type searchPageJSON[T any] struct {
	PerPage           int  `json:"per_page"`
	From              int  `json:"from"` // number of the first item, 0 on an empty page
	To                int  `json:"to"`   // number of the last item, 0 on an empty page
	Total             int  `json:"total"`
	TotalIsLowerBound bool `json:"total_is_lower_bound"`
	CurrentPage       int  `json:"current_page"`
	LastPage          int  `json:"last_page"`
	Data              []T  `json:"data"`
}

// toSearchPageJSON converts a page. maxPage is the highest number that a page may have.
func toSearchPageJSON[T, B any](result core.Page[T], page, perPage, maxPage int, toJSON func(T) B) searchPageJSON[B] {
	counted := result.Total
	if result.More {
		counted = core.MaxCounted
	}
	body := searchPageJSON[B]{
		PerPage: perPage, Total: result.Total, TotalIsLowerBound: result.More, CurrentPage: page,
		LastPage: min(maxPage, max(1, (counted+perPage-1)/perPage)),
		Data:     make([]B, len(result.Items)),
	}
	for i, item := range result.Items {
		body.Data[i] = toJSON(item)
	}
	if len(result.Items) > 0 {
		body.From = (page-1)*perPage + 1
		body.To = body.From + len(result.Items) - 1
	}
	return body
}

// pageParams reads the parameters page and perPage of a search.
func (f *form) pageParams() (page, perPage int) {
	return int(f.integer("page", 1)), int(f.integer("perPage", core.DefaultSearchPerPage))
}

// id returns the id in a field, 0 when the field is absent.
func (f *form) id(name string) int64 {
	n := f.optionalInteger(name)
	switch {
	case n == nil:
		return 0
	case *n < 1:
		f.addError(name, "The field %s must be at least 1.", name)
	}
	return *n
}
