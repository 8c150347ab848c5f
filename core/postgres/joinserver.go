package postgres

import (
	"context"
	"net/netip"

	"github.com/veneer-skins/veneer/core"
)

var _ core.JoinStore = (*DB)(nil)

// joinGame also deletes the player's joins that are over. $5 is the player, $6 the server, $7 the
// network, and $8 how long a join counts.
const joinGame = `
	WITH presented AS (` + presentedLauncher + `
	), joining AS (
		SELECT t.pid, t.token, t.permission FROM presented t JOIN players p USING (pid) WHERE t.valid AND p.uuid = $5
	), ended AS (
		DELETE FROM game_joins g USING joining j WHERE g.pid = j.pid AND g.server <> $6 AND g.joined_at <= now() - $8::interval
	), joined AS (
		INSERT INTO game_joins (pid, server, address, joined_at, token)
		SELECT pid, $6, $7, clock_timestamp(), token FROM joining WHERE permission <> -1
		ON CONFLICT (pid, server) DO UPDATE SET address = excluded.address, joined_at = excluded.joined_at, token = excluded.token
	)
	SELECT permission FROM joining`

// JoinGame adds a join.
func (db *DB) JoinGame(ctx context.Context, join core.GameJoin) error {
	rows, err := collect[struct{ Permission core.Permission }](ctx, db.writes, statement{joinGame, presentedArgs(
		join.Token, nil, join.Window, [16]byte(join.Player), join.Server[:], join.From, core.JoinTTL,
	)})
	switch violatedConstraint(err) {
	case "game_joins_pid_fkey", "game_joins_token_fkey": // the player or the token was deleted at this moment
		return core.ErrLauncherToken
	}
	row, err := one(rows, failure("join a game server", err), core.ErrLauncherToken)
	if err == nil && row.Permission == core.Banned {
		err = core.ErrBanned(core.User{})
	}
	return err
}

const selectJoinedProfile = `
	SELECT ` + profileColumns + `, '' AS epoch, 0::bigint AS revision
	FROM players p JOIN game_joins j ON j.pid = p.pid AND j.server = $1 JOIN users u ON u.uid = p.uid ` + profileTextures + `
	WHERE p.name_key = $2 AND p.name = $3 AND ` + effectivePermission + ` <> -1 AND j.joined_at > clock_timestamp() - $5::interval
		AND ($4::inet IS NULL OR family(j.address) <> family($4) OR j.address = $4)`

// JoinedProfile returns the profile of a player that has joined a server.
func (db *DB) JoinedProfile(ctx context.Context, joined core.JoinedPlayer) (core.Profile, error) {
	var from *netip.Prefix
	if joined.From.IsValid() {
		from = &joined.From
	}
	profile, _, err := db.profile(ctx, statement{selectJoinedProfile, []any{joined.Server[:], joined.Name.Key, joined.Name.Name, from, core.JoinTTL}})
	return profile, err
}

const deleteOldJoins = `DELETE FROM game_joins WHERE joined_at <= clock_timestamp() - $1::interval`

// TrimJoins deletes old joins.
func (db *DB) TrimJoins(ctx context.Context) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteOldJoins, core.JoinTTL)
	return int(tag.RowsAffected()), failure("trim joins of game servers", err)
}
