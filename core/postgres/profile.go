package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.ProfileStore = (*DB)(nil)

// profileColumns are the columns of a profileRow, from the table players as p and from
// profileTextures.
const (
	profileColumns  = `p.uuid, p.name, s.hash AS skin, coalesce(s.type = 'alex', false) AS slim, c.hash AS cape`
	profileTextures = `LEFT JOIN textures s ON s.tid = p.tid_skin LEFT JOIN textures c ON c.tid = p.tid_cape`
)

type profileRow struct {
	UUID       [16]byte
	Name       string
	Skin, Cape skin.Hash
	Slim       bool
	Epoch      string
	Revision   int64
}

// selectProfile is one statement, so that cursor and profile come from one snapshot.
const selectProfile = `
	SELECT ` + profileColumns + `, feed.epoch::text, feed.revision
	FROM players p CROSS JOIN feed ` + profileTextures + `
	WHERE p.uuid = $1`

// Profile returns the profile of a player.
func (db *DB) Profile(ctx context.Context, player uuid.UUID) (core.Profile, edgeproto.Cursor, error) {
	return db.profile(ctx, statement{selectProfile, []any{[16]byte(player)}})
}

// profile returns the profile that a query selects. Game servers ask for one with each player that
// joins, so concurrent queries share round trips.
func (db *DB) profile(ctx context.Context, query statement) (core.Profile, edgeproto.Cursor, error) {
	rows, err := db.profileBatcher.query(ctx, query)
	row, err := one(rows, failure("read a profile", err), errNoPlayer)
	if err != nil {
		return core.Profile{}, edgeproto.Cursor{}, err
	}
	profile := core.Profile{NamedPlayer: core.NamedPlayer{UUID: row.UUID, Name: row.Name}, Skin: row.Skin, Cape: row.Cape, Slim: row.Slim}
	return profile, edgeproto.Cursor{Epoch: row.Epoch, Revision: row.Revision}, nil
}

// selectPlayersNamed is one statement, as selectProfile is.
const selectPlayersNamed = `
	SELECT p.name_key, p.uuid, p.name, feed.epoch::text, feed.revision
	FROM players p CROSS JOIN feed WHERE p.name_key = ANY ($1::text[])`

// PlayersNamed returns the players with search keys.
func (db *DB) PlayersNamed(ctx context.Context, keys []string) (map[string]core.NamedPlayer, edgeproto.Cursor, error) {
	rows, err := collect[struct {
		NameKey  string
		UUID     [16]byte
		Name     string
		Epoch    string
		Revision int64
	}](ctx, db.reads, statement{selectPlayersNamed, []any{keys}})
	if err != nil {
		return nil, edgeproto.Cursor{}, failure("look up names of players", err)
	}
	players, at := make(map[string]core.NamedPlayer, len(rows)), edgeproto.Cursor{}
	for _, row := range rows {
		players[row.NameKey] = core.NamedPlayer{UUID: row.UUID, Name: row.Name}
		at = edgeproto.Cursor{Epoch: row.Epoch, Revision: row.Revision}
	}
	return players, at, nil
}
