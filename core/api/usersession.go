package api

import (
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// sessionJSON is a session in a list of its user.
type sessionJSON struct {
	ID          uuid.UUID `json:"id"`
	CreatedAt   timestamp `json:"created_at"`
	RefreshedAt timestamp `json:"refreshed_at"`
	Current     bool      `json:"current"`
	Browser     string    `json:"browser"`
	System      string    `json:"system"`
}

// launcherJSON is a launcher in a list of its user.
type launcherJSON struct {
	ID         uuid.UUID     `json:"id"`
	IssuedAt   timestamp     `json:"issued_at"`
	Valid      bool          `json:"valid"`
	PID        core.PlayerID `json:"pid"` // 0 for none
	PlayerName string        `json:"player_name,omitempty"`
}

// signInsJSON is what is signed in as a user.
type signInsJSON struct {
	Sessions  []sessionJSON  `json:"sessions"`
	Launchers []launcherJSON `json:"launchers"`
}

// handleListSessions handles GET /api/user/sessions.
func (s *Server) handleListSessions(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	found, err := s.UserSessions.List(ctx, token)
	if err != nil {
		return err
	}
	body := signInsJSON{make([]sessionJSON, len(found.Sessions)), make([]launcherJSON, len(found.Launchers))}
	for i, session := range found.Sessions {
		body.Sessions[i] = sessionJSON{session.ID, timestamp(session.CreatedAt), timestamp(session.RefreshedAt), session.Current, session.Browser, session.System}
	}
	for i, launcher := range found.Launchers {
		body.Launchers[i] = launcherJSON{launcher.ID, timestamp(launcher.IssuedAt), launcher.Valid, launcher.Player, launcher.PlayerName}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, body)
}

// handleEndOtherSessions handles DELETE /api/user/sessions.
func (s *Server) handleEndOtherSessions(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.UserSessions.EndOthers(ctx, caller); err != nil {
		return err
	}
	return writeOK(rc, "Your other sessions have ended, and your launchers are signed out.", nil)
}

// handleEndSession handles DELETE /api/user/sessions/{id}.
func (s *Server) handleEndSession(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	id, err := pathUUID(rc, "id")
	if err != nil {
		return err
	}
	if err := s.UserSessions.End(ctx, caller, id); err != nil {
		return err
	}
	return writeOK(rc, "The session has ended.", nil)
}
