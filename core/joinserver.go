package core

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
)

// JoinTTL is how long a game server may ask for a player that is joining it.
const JoinTTL = 30 * time.Second

// GameJoin says that the player of a token joins a game server.
type GameJoin struct {
	Token  LauncherHash
	Player uuid.UUID
	Server [32]byte     // SHA-256 of the id that client and server have agreed on
	From   netip.Prefix // the client's network
	Window LauncherTokenWindow
}

// JoinedPlayer selects a player that is joining a game server.
type JoinedPlayer struct {
	Server [32]byte
	Name   NewPlayer // compared exactly
	// From, if valid, is the network that the player must have joined from, unless the address of one
	// is IPv4 and the other's IPv6.
	From netip.Prefix
}

// JoinStore holds the players that are joining game servers. Times are by the store's clock.
type JoinStore interface {
	// JoinGame adds a join. The token must be valid and bound to the player: ErrLauncherToken, or
	// ErrBanned for a banned user.
	JoinGame(ctx context.Context, join GameJoin) error

	// JoinedProfile returns the profile of a player that joined within JoinTTL; a NotFound fault if
	// there is none, or the user was banned since.
	JoinedProfile(ctx context.Context, joined JoinedPlayer) (Profile, error)

	// TrimJoins deletes older joins and returns how many.
	TrimJoins(ctx context.Context) (int, error)
}

// JoinServer tells game servers whether a client is a player: the client announces that it joins a
// server, and the server asks for that.
type JoinServer struct {
	store   JoinStore
	tokens  *LauncherTokens
	checkIP bool
}

// NewJoinServer returns the joins of a store. With checkIP a server that gives the address of its
// client learns only of players that joined from there.
func NewJoinServer(store JoinStore, tokens *LauncherTokens, checkIP bool) *JoinServer {
	return &JoinServer{store: store, tokens: tokens, checkIP: checkIP}
}

// Join announces that a player joins a server. The token must be valid and bound to the player:
// ErrLauncherToken, or ErrBanned for a banned user.
func (j *JoinServer) Join(ctx context.Context, token string, player uuid.UUID, server []byte, from netip.Prefix) error {
	return j.store.JoinGame(ctx, GameJoin{
		Token: hashLauncherToken(token), Player: player, Server: sha256.Sum256(server), From: from, Window: j.tokens.limits.window(),
	})
}

// HasJoined returns the profile of a player that has joined a server within 30 seconds, also
// repeatedly; otherwise a NotFound fault. from is where the server says that its client is: nil if it
// does not say it, the zero Prefix for an address of no client.
func (j *JoinServer) HasJoined(ctx context.Context, name string, server []byte, from *netip.Prefix) (profile Profile, err error) {
	if !isPrintable(name) {
		return Profile{}, errNoPlayer
	}
	joined := JoinedPlayer{Server: sha256.Sum256(server), Name: NewPlayer{Name: name, Key: casefold.Key(name)}}
	if j.checkIP && from != nil {
		if !from.IsValid() {
			return Profile{}, errNoPlayer
		}
		joined.From = *from
	}
	err = j.tokens.unknown.doOne(ctx, joined.Name.Key, func() error {
		profile, err = j.store.JoinedProfile(ctx, joined)
		return err
	})
	return profile, err
}

// Trim deletes joins that no server can ask for any more and returns how many.
func (j *JoinServer) Trim(ctx context.Context) (int, error) {
	return j.store.TrimJoins(ctx)
}
