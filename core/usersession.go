package core

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// UserSession is a live session of a user.
type UserSession struct {
	ID          uuid.UUID
	CreatedAt   time.Time
	RefreshedAt time.Time
	Current     bool // whether it is the session of the request
	// Browser and System are as in Origin.
	Browser, System string
}

// UserLauncher is a launcher with a live token of a user.
type UserLauncher struct {
	ID         uuid.UUID // another one after each refresh; it reveals nothing about the token
	IssuedAt   time.Time
	Valid      bool     // whether the token is valid; else the launcher must refresh it
	Player     PlayerID // that the token is bound to; 0 for none
	PlayerName string
}

// SignIns is what is signed in as a user.
type SignIns struct {
	Sessions  []UserSession
	Launchers []UserLauncher
}

// UserSessionStore holds the sessions of a user, and the tokens of the user's launchers.
type UserSessionStore interface {
	// SignIns lists the live sessions and launchers of the token's user, the newest first.
	SignIns(ctx context.Context, token VerifiedToken, window LauncherTokenWindow) (SignIns, error)

	// EndSignIns ends all sessions of a user but one, and all tokens of launchers.
	EndSignIns(ctx context.Context, user UserID, keep uuid.UUID) error

	// EndSignIn ends a session, or the token of a launcher. An unknown one, or one of another user,
	// is a NotFound fault.
	EndSignIn(ctx context.Context, user UserID, id uuid.UUID) error
}

// UserSessions shows users where they are signed in, and signs them out there.
type UserSessions struct {
	store     UserSessionStore
	launchers LauncherLimits
}

// NewUserSessions returns the sessions of a store.
func NewUserSessions(store UserSessionStore, launchers LauncherLimits) *UserSessions {
	return &UserSessions{store: store, launchers: launchers}
}

// List returns the live sessions and launchers of the token's user, the newest first.
func (s *UserSessions) List(ctx context.Context, token VerifiedToken) (SignIns, error) {
	return s.store.SignIns(ctx, token, s.launchers.window())
}

// EndOthers ends all sessions of the caller but the one of the request, and all tokens of launchers.
func (s *UserSessions) EndOthers(ctx context.Context, caller Caller) error {
	return s.store.EndSignIns(ctx, caller.ID, caller.Session)
}

// End ends a session of the caller, or the token of a launcher. An unknown one, or one of another
// user, is a NotFound fault.
func (s *UserSessions) End(ctx context.Context, caller Caller, id uuid.UUID) error {
	return s.store.EndSignIn(ctx, caller.ID, id)
}
