package api

import (
	"context"
	"strings"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
)

// userParameter returns the user that a parameter names as core.Accounts.Named takes it, and the
// errors of the form. Without the parameter the user is nil.
func (s *Server) userParameter(ctx context.Context, f *decode.Form, name string, least core.UserID) (*core.UserID, error) {
	text := strings.TrimSpace(f.OptionalStr(name, ""))
	if err := f.Err(); err != nil || text == "" {
		return nil, err
	}
	user, err := s.Accounts.Named(ctx, name, text, least)
	return &user, err
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
