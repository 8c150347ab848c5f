package postgres

import (
	"context"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.PlayerStore = (*DB)(nil)

// playerColumns are the columns of a core.Player.
const playerColumns = `pid AS id, uid AS owner, uuid, name, coalesce(tid_skin, 0) AS skin, coalesce(tid_cape, 0) AS cape, last_modified`

// playerKeys are the mapping keys of a player, for a change.
const playerKeys = `ARRAY['pid:' || pid, 'name:' || name_key, 'uuid:' || uuid]`

const selectPlayers = `SELECT ` + playerColumns + ` FROM players WHERE uid = $1 ORDER BY pid`

// Players lists the players of a session's user by pid.
func (db *DB) Players(ctx context.Context, token core.VerifiedToken) ([]core.Player, error) {
	return readWithSession[core.Player](ctx, db, token, statement{selectPlayers, []any{token.Token.User}})
}

const (
	insertPlayer = `
	WITH quota AS (
		SELECT uid FROM users
		WHERE uid = $1 AND score >= $5 AND ($4 = 0 OR (SELECT count(*) FROM players WHERE uid = $1) < $4)
	), inserted AS (
		INSERT INTO players (uid, name, name_key, refund)
		SELECT uid, $2, $3, CASE WHEN $6 THEN nullif($5::bigint, 0) END FROM quota
		WHERE NOT EXISTS (SELECT FROM players WHERE name_key = $3)
		RETURNING *
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM inserted
	)`

	insertPaidPlayer = insertPlayer + `, score_entries AS (
		SELECT 1 AS n, uid, -$5 AS amount, 'player' AS reason, 'player:' || pid AS subject FROM inserted
	)` + applyScoreEntries

	// If the quota allows a player, but the name is taken, this is the player of that name.
	selectInsertedPlayer = `
	SELECT ` + playerColumns + `, false AS taken FROM inserted
	UNION ALL
	SELECT ` + playerColumns + `, true FROM players WHERE name_key = $3 AND EXISTS (SELECT FROM quota)`
)

// CreatePlayer adds a player.
func (db *DB) CreatePlayer(ctx context.Context, owner core.UserID, player core.NewPlayer, pricing core.Pricing) (core.Player, error) {
	maxPlayers := pricing.Quotas.Players
	sql := insertPaidPlayer + selectInsertedPlayer
	if pricing.Free() {
		sql = insertPlayer + selectInsertedPlayer
	}
	scores, players, err := withUserLock[struct {
		core.Player
		Taken bool
	}](ctx, db, owner, statement{lockName, []any{player.Key}}, statement{sql, []any{owner, player.Name, player.Key, maxPlayers, pricing.Cost, pricing.Refund}})
	switch {
	case err != nil:
		return core.Player{}, failure("add a player", uniqueFault(err, errNameTaken))
	case len(scores) == 0:
		return core.Player{}, core.ErrSignedOut
	case len(players) == 0 && scores[0] < pricing.Cost:
		return core.Player{}, core.ErrScoreTooLow(pricing.Cost)
	case len(players) == 0:
		return core.Player{}, fault.New(fault.Refused, "You have %d players already, and may have no more.", maxPlayers)
	case players[0].Taken:
		return core.Player{}, errNameTaken
	}
	db.onChange()
	return players[0].Player, nil
}

var errNameTaken = duplicateFault("name", "A player of this name exists already.")

// Writes first lock, in a statement of their own: the next statement has a new snapshot, and so
// sees the changes of the transaction that held the lock. For the same reason last_modified is
// clock_timestamp(): now() is the beginning of the transaction, which may be before the change
// that it waited for, and edges use the date to tell whether a client's copy is outdated.
const lockPlayer = `SELECT pid FROM players WHERE pid = $1 FOR UPDATE`

// The writes below change a player only if it is the owner's. They return the player after the
// write, also another owner's, or nothing.
const (
	withTarget = `
	WITH target AS (
		SELECT * FROM players WHERE pid = $2
	), `

	selectChanged = `
	SELECT ` + playerColumns + ` FROM changed
	UNION ALL
	SELECT ` + playerColumns + ` FROM target WHERE NOT EXISTS (SELECT FROM changed)`
)

// changePlayer runs a statement built from withTarget and selectChanged, and returns a
// Forbidden fault if the player is not the owner's. Owner and player are the first two
// arguments of the statement.
func (db *DB) changePlayer(ctx context.Context, operation, sql string, owner core.UserID, player core.PlayerID, args ...any) (core.Player, error) {
	changed, err := changePlayer(ctx, db.writes, operation, sql, owner, player, args...)
	if err == nil {
		db.onChange()
	}
	return changed, err
}

func changePlayer(ctx context.Context, q querier, operation, sql string, owner core.UserID, player core.PlayerID, args ...any) (core.Player, error) {
	players, err := collect[core.Player](ctx, q,
		statement{lockPlayer, []any{player}},
		statement{sql, append([]any{owner, player}, args...)},
	)
	if err != nil {
		return core.Player{}, failure(operation, err)
	}
	if err := checkOwner(players, owner); err != nil {
		return core.Player{}, err
	}
	return players[0], nil
}

var errNoPlayer = fault.New(fault.NotFound, "There is no such player.")

func checkOwner(players []core.Player, owner core.UserID) error {
	switch {
	case len(players) == 0:
		return errNoPlayer
	case players[0].Owner != owner:
		return fault.New(fault.Forbidden, "This player is somebody else's.")
	default:
		return nil
	}
}

const deletePlayer = withTarget + `changed AS (
		DELETE FROM players p USING target t WHERE p.pid = t.pid AND t.uid = $1
		RETURNING p.*
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed
	), score_entries AS (
		SELECT 1 AS n, uid, refund AS amount, 'player_refund' AS reason, 'player:' || pid AS subject FROM changed
	)` + applyScoreEntries + selectChanged

// DeletePlayer deletes a player. The owner is locked first, for a refund.
func (db *DB) DeletePlayer(ctx context.Context, owner core.UserID, player core.PlayerID) error {
	players, err := collect[core.Player](ctx, db.writes,
		statement{lockUser, []any{owner}},
		statement{lockPlayer, []any{player}},
		statement{deletePlayer, []any{owner, player}},
	)
	if err != nil {
		return failure("delete a player", err)
	}
	if err := checkOwner(players, owner); err != nil {
		return err
	}
	db.onChange()
	return nil
}

// renamePlayer changes nothing if another player has the new name.
const renamePlayer = withTarget + `changed AS (
		UPDATE players p SET name = $3, name_key = $4, last_modified = clock_timestamp()
		FROM target t WHERE p.pid = t.pid AND t.uid = $1 AND t.name <> $3 AND NOT EXISTS (SELECT FROM players o WHERE o.name_key = $4 AND o.pid <> $2)
		RETURNING p.*
	), change_events AS (
		INSERT INTO changes (keys)
		SELECT ARRAY['pid:' || pid, 'name:' || t.name_key, 'name:' || c.name_key, 'uuid:' || c.uuid] FROM changed c JOIN target t USING (pid)
	)` + selectChanged

// RenamePlayer renames a player.
func (db *DB) RenamePlayer(ctx context.Context, owner core.UserID, player core.PlayerID, name core.NewPlayer) (core.Player, error) {
	renamed, err := rename(ctx, db.writes, owner, player, name)
	if err == nil {
		db.onChange()
	}
	return renamed, err
}

func rename(ctx context.Context, q querier, owner core.UserID, player core.PlayerID, name core.NewPlayer) (core.Player, error) {
	players, err := collect[core.Player](ctx, q,
		statement{lockPlayer, []any{player}},
		statement{lockName, []any{name.Key}},
		statement{renamePlayer, []any{owner, player, name.Name, name.Key}},
	)
	if err != nil {
		return core.Player{}, failure("rename a player", uniqueFault(err, errNameTaken))
	}
	if err := checkOwner(players, owner); err != nil {
		return core.Player{}, err
	}
	if players[0].Name != name.Name {
		return core.Player{}, errNameTaken
	}
	return players[0], nil
}

const clearPlayerTextures = withTarget + `changed AS (
		UPDATE players p
		SET tid_skin = CASE WHEN NOT $3 THEN t.tid_skin END, tid_cape = CASE WHEN NOT $4 THEN t.tid_cape END, last_modified = clock_timestamp()
		FROM target t
		WHERE p.pid = t.pid AND t.uid = $1 AND ($3 AND t.tid_skin IS NOT NULL OR $4 AND t.tid_cape IS NOT NULL)
		RETURNING p.*
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed
	)` + selectChanged

// ClearPlayerTextures empties texture slots of a player.
func (db *DB) ClearPlayerTextures(ctx context.Context, owner core.UserID, player core.PlayerID, skin, cape bool) (core.Player, error) {
	return db.changePlayer(ctx, "clear the textures of a player", clearPlayerTextures, owner, player, skin, cape)
}

// Textures are locked, so that none is made private, deleted, or taken out of the closet before
// the commit. They are locked before the player, as in the deletion of a texture.
const lockTextures = `SELECT tid FROM textures WHERE tid IN ($1, $2) ORDER BY tid FOR SHARE`

const setPlayerTextures = withTarget + `requested AS (
		SELECT t.tid, t.type, t.public OR coalesce(t.uploader = $1, false) OR EXISTS (
			SELECT FROM closet_items c WHERE c.uid = $1 AND c.tid = t.tid
		) AS allowed
		FROM textures t WHERE t.tid IN ($3, $4)
	), validation AS (
		SELECT
			CASE
				WHEN $3::bigint IS NULL THEN ''
				WHEN s.tid IS NULL THEN 'missing'
				WHEN s.type = 'cape' THEN 'wrong_type'
				WHEN NOT s.allowed THEN 'private'
				ELSE ''
			END AS skin_violation,
			CASE
				WHEN $4::bigint IS NULL THEN ''
				WHEN c.tid IS NULL THEN 'missing'
				WHEN c.type <> 'cape' THEN 'wrong_type'
				WHEN NOT c.allowed THEN 'private'
				ELSE ''
			END AS cape_violation
		FROM (VALUES (1)) one (row)
		LEFT JOIN requested s ON s.tid = $3
		LEFT JOIN requested c ON c.tid = $4
	), changed AS (
		UPDATE players p
		SET tid_skin = coalesce($3, t.tid_skin), tid_cape = coalesce($4, t.tid_cape), last_modified = clock_timestamp()
		FROM target t, validation v
		WHERE p.pid = t.pid AND t.uid = $1 AND v.skin_violation = '' AND v.cape_violation = ''
			AND (t.tid_skin IS DISTINCT FROM coalesce($3, t.tid_skin) OR t.tid_cape IS DISTINCT FROM coalesce($4, t.tid_cape))
		RETURNING p.*
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed
	), result AS (` + selectChanged + `
	)
	SELECT result.*, skin_violation, cape_violation FROM result, validation`

// SetPlayerTextures applies textures to a player.
func (db *DB) SetPlayerTextures(ctx context.Context, owner core.UserID, player core.PlayerID, selection core.TextureSelection) (core.Player, error) {
	changed, err := applyTextures(ctx, db.writes, owner, player, selection, "your closet")
	if err == nil {
		db.onChange()
	}
	return changed, err
}

// applyTextures puts textures into a player's slots. closet is what error messages call the
// owner's closet.
func applyTextures(ctx context.Context, q querier, owner core.UserID, player core.PlayerID, selection core.TextureSelection, closet string) (core.Player, error) {
	rows, err := collect[struct {
		core.Player
		SkinViolation, CapeViolation string
	}](ctx, q,
		statement{lockTextures, []any{selection.Skin, selection.Cape}},
		statement{lockPlayer, []any{player}},
		statement{setPlayerTextures, []any{owner, player, selection.Skin, selection.Cape}},
	)
	if err != nil {
		return core.Player{}, failure("apply textures", err)
	}
	var players []core.Player
	for _, row := range rows {
		players = append(players, row.Player)
	}
	if err := checkOwner(players, owner); err != nil {
		return core.Player{}, err
	}
	if err := violationError("skin", rows[0].SkinViolation, selection.Skin, "a skin, of type steve or alex", closet); err != nil {
		return core.Player{}, err
	}
	if err := violationError("cape", rows[0].CapeViolation, selection.Cape, "a cape", closet); err != nil {
		return core.Player{}, err
	}
	return players[0], nil
}

// violationError returns the fault of a texture that cannot be put into a slot.
func violationError(slot, violation string, tid *core.TextureID, wanted, closet string) error {
	switch violation {
	case "missing":
		return noTexture(*tid)
	case "wrong_type":
		return fault.Field(slot, "Texture %d is not %s.", *tid, wanted)
	case "private":
		return fault.New(fault.Forbidden, "Texture %d is private, and not in %s.", *tid, closet)
	default:
		return nil
	}
}
