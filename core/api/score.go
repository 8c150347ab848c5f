package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// scoreChangeJSON is a change of a score in a response.
type scoreChangeJSON struct {
	Time    timestamp `json:"time"`
	Amount  int64     `json:"amount"`
	Balance int64     `json:"balance"`
	Reason  string    `json:"reason"`
	Subject string    `json:"subject"`
}

// dailySignInJSON is the reward of a daily sign-in.
type dailySignInJSON struct {
	Gained     int64     `json:"gained"`
	Score      int64     `json:"score"`
	NextSignAt timestamp `json:"next_sign_at"`
}

// handleListScoreChanges handles GET /api/user/score.
func (s *Server) handleListScoreChanges(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	f := decode.ParseQuery(rc)
	var query core.ScoreQuery
	query.Page, query.PerPage = f.Page(core.DefaultScoreChanges)
	if err := f.Err(); err != nil {
		return err
	}
	page, err := s.Scores.List(ctx, token, query)
	if err != nil {
		return err
	}
	bodies := make([]scoreChangeJSON, len(page.Changes))
	for i, c := range page.Changes {
		bodies[i] = scoreChangeJSON{timestamp(c.At), c.Amount, c.Balance, c.Reason, c.Subject}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toPageJSON(query.Page, query.PerPage, page.Total, bodies))
}

// handleSignForToday handles POST /api/user/sign.
func (s *Server) handleSignForToday(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	reward, err := s.Scores.Sign(ctx, caller)
	if err != nil {
		return err
	}
	return writeOK(rc, "You have signed in for today.", dailySignInJSON{reward.Gained, reward.Score, timestamp(reward.Next)})
}
