package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// scoreChangeBody is a change of a score as the API writes it.
type scoreChangeBody struct {
	Time    timestamp `json:"time"`
	Amount  int64     `json:"amount"`
	Balance int64     `json:"balance"`
	Reason  string    `json:"reason"`
	Subject string    `json:"subject"`
}

// signBody is what a daily sign-in came to, as the API writes it.
type signBody struct {
	Gained     int64     `json:"gained"`
	Score      int64     `json:"score"`
	NextSignAt timestamp `json:"next_sign_at"`
}

// scoreChanges handles GET /api/user/score.
func (s *Server) scoreChanges(ctx context.Context, rc *fasthttp.RequestCtx, ticket core.VerifiedToken) error {
	f := readQuery(rc)
	query := core.ScoreQuery{Page: int(f.integer("page", 1)), PerPage: int(f.integer("perPage", core.DefaultScoreChanges))}
	if err := f.fault(); err != nil {
		return err
	}
	page, err := s.Ledger.List(ctx, ticket, query)
	if err != nil {
		return err
	}
	bodies := make([]scoreChangeBody, len(page.Changes))
	for i, c := range page.Changes {
		bodies[i] = scoreChangeBody{timestamp(c.At), c.Amount, c.Balance, c.Reason, c.Subject}
	}
	return serve.JSON(rc, fasthttp.StatusOK, toPageBody(query.Page, query.PerPage, page.Total, bodies))
}

// sign handles POST /api/user/sign.
func (s *Server) sign(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	signed, err := s.Ledger.Sign(ctx, caller)
	if err != nil {
		return err
	}
	return done(rc, "You have signed in for today.", signBody{signed.Gained, signed.Score, timestamp(signed.Next)})
}
