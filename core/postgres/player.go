package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
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
			AND NOT EXISTS (SELECT FROM deleted_players d WHERE d.name_key = $3 AND d.uid <> $1 AND ` + restorable + `)
		RETURNING *
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM inserted
	)`

	insertPaidPlayer = insertPlayer + `, score_entries AS (
		SELECT 1 AS n, uid, -$5 AS amount, 'player' AS reason, 'player:' || pid AS subject FROM inserted
	)` + applyScoreEntries

	// If the quota allows a player, but the name is taken, this is a row without a player.
	selectInsertedPlayer = `
	SELECT ` + playerColumns + `, false AS taken FROM inserted
	UNION ALL
	SELECT 0, uid, '00000000-0000-0000-0000-000000000000'::uuid, '', 0, 0, now(), true FROM quota WHERE NOT EXISTS (SELECT FROM inserted)`
)

// restorable is the condition that a row d of deleted_players is there still: it may not be trimmed yet.
const restorable = `d.deleted_at > now() - interval '1 day'`

// CreatePlayer adds a player.
func (db *DB) CreatePlayer(ctx context.Context, owner core.UserID, player core.NewPlayer, pricing core.Pricing) (core.Player, error) {
	sql := insertPaidPlayer + selectInsertedPlayer
	if pricing.Free() {
		sql = insertPlayer + selectInsertedPlayer
	}
	scores, players, err := withUserLock[struct {
		core.Player
		Taken bool
	}](ctx, db, owner, statement{lockName, []any{player.Key}}, statement{sql, []any{owner, player.Name, player.Key, pricing.Quotas.Players, pricing.Cost, pricing.Refund}})
	switch {
	case err != nil:
		return core.Player{}, failure("add a player", uniqueFault(err, errNameTaken))
	case len(scores) == 0:
		return core.Player{}, core.ErrSignedOut
	case len(players) == 0 && scores[0] < pricing.Cost:
		return core.Player{}, core.ErrScoreTooLow(pricing.Cost)
	case len(players) == 0:
		return core.Player{}, errTooManyPlayers(pricing.Quotas)
	case players[0].Taken:
		return core.Player{}, errNameTaken
	}
	db.onChange()
	return players[0].Player, nil
}

func errTooManyPlayers(quotas core.Quotas) error {
	return fault.New(fault.Refused, "You have %d players already, and may have no more.", quotas.Players)
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

// updatePlayer runs statements, the last of them built from withTarget and selectChanged, and returns
// a Forbidden fault if the player is not the owner's.
func updatePlayer(ctx context.Context, q querier, operation string, owner core.UserID, statements ...statement) (core.Player, error) {
	players, err := collect[core.Player](ctx, q, statements...)
	player, err := one(players, failure(operation, uniqueFault(err, errNameTaken)), errNoPlayer)
	if err != nil {
		return core.Player{}, err
	}
	return player, checkOwner(player, owner)
}

var errNoPlayer = fault.New(fault.NotFound, "There is no such player.")

func checkOwner(player core.Player, owner core.UserID) error {
	if player.Owner != owner {
		return fault.New(fault.Forbidden, "This player is somebody else's.")
	}
	return nil
}

// playerDetails are the details of a player action in the audit log: name and owner before it,
// and the changed value.
type playerDetails struct {
	Name string      `json:"name"`
	UID  core.UserID `json:"uid"`
	From any         `json:"from,omitempty"`
	To   any         `json:"to,omitempty"`
}

// playerTextures are the textures of a player, for the audit log. UID is the owner, where the
// action changes it.
type playerTextures struct {
	UID  core.UserID    `json:"uid,omitempty"`
	Skin core.TextureID `json:"skin"`
	Cape core.TextureID `json:"cape"`
}

// playerTexturesOf returns the textures of a player.
func playerTexturesOf(p core.Player) any { return playerTextures{Skin: p.Skin, Cape: p.Cape} }

// playerChange is a change of a player.
type playerChange struct {
	action core.AuditAction
	// newOwner is the user that receives the player; 0 if the owner stays.
	newOwner core.UserID
	// selection has the textures to apply.
	selection core.TextureSelection
	// loggedValue returns the value that the action changes; nil if there is none to log.
	loggedValue func(core.Player) any
	// do changes the player, if it is the owner's.
	do func(q querier, owner core.UserID) (core.Player, error)
}

const (
	selectPlayer = `SELECT ` + playerColumns + ` FROM players WHERE pid = $1`

	selectAndLockPlayer = selectPlayer + ` FOR UPDATE`

	lockPlayerTextures = `SELECT tid FROM textures WHERE tid = ANY ($1) ORDER BY tid FOR SHARE`
)

// errConcurrentChange is the fault of an action if the player changed between being read and
// being locked, on every try.
var errConcurrentChange = &fault.Error{
	Kind: fault.Unavailable, Message: "Somebody else is changing this at the moment. Please try again.", RetryAfter: time.Second,
}

// changePlayer runs a change of a player by its owner, or by an administrator.
func (db *DB) changePlayer(ctx context.Context, by core.Actor, player core.PlayerID, c playerChange) (core.Player, error) {
	if !by.Owner {
		return db.moderatePlayer(ctx, by, player, c)
	}
	after, err := c.do(db.writes, by.ID)
	if err != nil {
		return core.Player{}, err
	}
	db.onChange()
	return after, nil
}

// moderatePlayer runs a change of a player, if the administrator may moderate the owner's content,
// and logs it. Locks are taken in the order users, textures, players, but the owner
// and the textures are known from the player only. So the player is read first, and must be
// unchanged once it is locked.
func (db *DB) moderatePlayer(ctx context.Context, admin core.Actor, player core.PlayerID, c playerChange) (after core.Player, err error) {
	err = db.adminTx(ctx, string(c.action), func(tx pgx.Tx) error {
		players, err := collect[core.Player](ctx, tx, statement{selectPlayer, []any{player}})
		seen, err := one(players, err, errNoPlayer)
		if err != nil {
			return err
		}
		if err := authoriseOnOwners(ctx, tx, &admin, seen.Owner, c.newOwner); err != nil {
			return err
		}
		players, err = collect[core.Player](ctx, tx,
			statement{lockPlayerTextures, []any{[]*core.TextureID{&seen.Skin, &seen.Cape, c.selection.Skin, c.selection.Cape}}},
			statement{selectAndLockPlayer, []any{player}},
		)
		before, err := one(players, err, errNoPlayer)
		switch {
		case err != nil:
			return err
		case before != seen:
			return errConcurrentChange
		}
		if after, err = c.do(tx, before.Owner); err != nil {
			return err
		}
		details := playerDetails{Name: before.Name, UID: before.Owner}
		if c.loggedValue != nil {
			details.From, details.To = c.loggedValue(before), c.loggedValue(after)
		}
		return writeAudit(ctx, tx, admin, c.action, fmt.Sprintf("player:%d", player), details)
	})
	return after, err
}

// authoriseOnOwners returns a fault unless the administrator may moderate the content of a
// player's owner and, if the player is moved, of the new one.
func authoriseOnOwners(ctx context.Context, tx pgx.Tx, admin *core.Actor, owner, to core.UserID) error {
	ownerIDs := []core.UserID{owner}
	if to != 0 {
		ownerIDs = append(ownerIDs, to)
	}
	current, users, err := authorise(ctx, tx, *admin, ownerIDs...)
	if err != nil {
		return err
	}
	*admin = current
	for _, uid := range ownerIDs {
		user, ok := users[uid]
		switch {
		case !ok && uid == owner:
			return errConcurrentChange // the player was deleted with the owner
		case !ok:
			return noUser(uid)
		}
		if err := current.CanModerateContentOf(user); err != nil {
			return err
		}
	}
	return nil
}

const deletePlayer = withTarget + `changed AS (
		DELETE FROM players p USING target t WHERE p.pid = t.pid AND t.uid = $1
		RETURNING p.*
	), kept AS (
		INSERT INTO deleted_players (pid, uid, tid_skin, tid_cape, refund, uuid, name, name_key)
		SELECT pid, uid, tid_skin, tid_cape, refund, uuid, name, name_key FROM changed WHERE $3
	), forgotten AS (
		DELETE FROM deleted_players WHERE pid IN (SELECT pid FROM deleted_players WHERE uid = $1 ORDER BY deleted_at DESC OFFSET 99)
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed
	), score_entries AS (
		SELECT 1 AS n, uid, refund AS amount, 'player_refund' AS reason, 'player:' || pid AS subject FROM changed
	)` + applyScoreEntries + selectChanged

// DeletePlayer deletes a player. The owner is locked first, for a refund. The 100 latest that the owner has deleted can be
// restored.
func (db *DB) DeletePlayer(ctx context.Context, by core.Actor, player core.PlayerID) error {
	_, err := db.changePlayer(ctx, by, player, playerChange{
		action: core.AuditPlayerDelete,
		do: func(q querier, owner core.UserID) (core.Player, error) {
			return updatePlayer(ctx, q, "delete a player", owner,
				statement{lockUser, []any{owner}},
				statement{lockPlayer, []any{player}},
				statement{deletePlayer, []any{owner, player, by.Owner}},
			)
		},
	})
	return err
}

const selectDeletedPlayers = `
	SELECT pid AS id, uid AS owner, uuid, name, coalesce(tid_skin, 0) AS skin, coalesce(tid_cape, 0) AS cape, deleted_at AS last_modified
	FROM deleted_players d WHERE uid = $1 AND ` + restorable + ` ORDER BY deleted_at DESC`

// DeletedPlayers lists the players of a session's user that can be restored.
func (db *DB) DeletedPlayers(ctx context.Context, token core.VerifiedToken) ([]core.Player, error) {
	return readWithSession[core.Player](ctx, db, token, statement{selectDeletedPlayers, []any{token.Token.User}})
}

const (
	lockTexturesOfDeleted = `
	SELECT t.tid FROM textures t JOIN deleted_players d ON t.tid IN (d.tid_skin, d.tid_cape) WHERE d.pid = $1 ORDER BY t.tid FOR SHARE OF t`

	lockDeletedPlayer = `SELECT pid FROM deleted_players WHERE pid = $1 FOR UPDATE`

	lockNameOfDeleted = `
	SELECT pg_advisory_xact_lock('players_name_key'::regclass::int, hashtext(name_key)) FROM deleted_players WHERE pid = $1`

	// restorePlayer puts on what the owner may still use.
	restorePlayer = `
	WITH target AS (
		SELECT d.*, score FROM deleted_players d JOIN users USING (uid) WHERE pid = $2 AND uid = $1 AND ` + restorable + `
	), allowed_textures AS (
		SELECT x.tid FROM textures x JOIN target t ON x.tid IN (t.tid_skin, t.tid_cape)
		WHERE x.public OR coalesce(x.uploader = $1, false) OR EXISTS (SELECT FROM closet_items c WHERE c.uid = $1 AND c.tid = x.tid)
	), validation AS (
		SELECT CASE
			WHEN $3 > 0 AND (SELECT count(*) FROM players WHERE uid = $1) >= $3 THEN 'quota'
			WHEN score < refund THEN 'score'
			WHEN EXISTS (SELECT FROM players p WHERE p.name_key = t.name_key) THEN 'name'
			ELSE ''
		END AS violation FROM target t
	), removed AS (
		DELETE FROM deleted_players d USING target t, validation WHERE d.pid = t.pid AND violation = ''
		RETURNING d.*
	), changed AS (
		INSERT INTO players (pid, uid, tid_skin, tid_cape, refund, uuid, name, name_key, last_modified) OVERRIDING SYSTEM VALUE
		SELECT pid, uid, (SELECT tid FROM allowed_textures WHERE tid = tid_skin), (SELECT tid FROM allowed_textures WHERE tid = tid_cape),
			refund, uuid, name, name_key, clock_timestamp() FROM removed
		RETURNING pid, uid, tid_skin, tid_cape, refund, uuid, name, name_key, last_modified
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed
	), score_entries AS (
		SELECT 1 AS n, uid, -refund AS amount, 'player' AS reason, 'player:' || pid AS subject FROM changed
	)` + applyScoreEntries + `, result AS (
		SELECT * FROM changed UNION ALL
		SELECT pid, uid, tid_skin, tid_cape, refund, uuid, name, name_key, deleted_at FROM target WHERE NOT EXISTS (SELECT FROM changed)
	)
	SELECT ` + playerColumns + `, violation, coalesce(refund, 0) AS cost FROM result, validation`
)

// RestorePlayer restores a deleted player.
func (db *DB) RestorePlayer(ctx context.Context, owner core.UserID, player core.PlayerID, quotas core.Quotas) (core.Player, error) {
	rows, err := collect[struct {
		core.Player
		Violation string
		Cost      int64
	}](ctx, db.writes,
		statement{lockUser, []any{owner}},
		statement{lockTexturesOfDeleted, []any{player}},
		statement{lockDeletedPlayer, []any{player}},
		statement{lockNameOfDeleted, []any{player}},
		statement{restorePlayer, []any{owner, player, quotas.Players}},
	)
	row, err := one(rows, failure("restore a player", uniqueFault(err, errNameTaken)), errNoPlayer)
	if err != nil {
		return core.Player{}, err
	}
	switch row.Violation {
	case "quota":
		return core.Player{}, errTooManyPlayers(quotas)
	case "score":
		return core.Player{}, core.ErrScoreTooLow(row.Cost)
	case "name":
		return core.Player{}, errNameTaken
	}
	db.onChange()
	return row.Player, nil
}

// TrimDeletedPlayers deletes players that can no longer be restored and returns how many.
func (db *DB) TrimDeletedPlayers(ctx context.Context) (int, error) {
	tag, err := db.writes.Exec(ctx, `DELETE FROM deleted_players d WHERE NOT (`+restorable+`)`)
	return int(tag.RowsAffected()), failure("trim deleted players", err)
}

// renamePlayer changes nothing if another player has the new name.
const renamePlayer = withTarget + `changed AS (
		UPDATE players p SET name = $3, name_key = $4, last_modified = clock_timestamp()
		FROM target t WHERE p.pid = t.pid AND t.uid = $1 AND t.name <> $3 AND NOT EXISTS (SELECT FROM players o WHERE o.name_key = $4 AND o.pid <> $2)
			AND NOT EXISTS (SELECT FROM deleted_players d WHERE d.name_key = $4 AND d.uid <> $1 AND ` + restorable + `)
		RETURNING p.*
	), change_events AS (
		INSERT INTO changes (keys)
		SELECT ARRAY['pid:' || pid, 'name:' || t.name_key, 'name:' || c.name_key, 'uuid:' || c.uuid] FROM changed c JOIN target t USING (pid)
	)` + selectChanged

// RenamePlayer renames a player.
func (db *DB) RenamePlayer(ctx context.Context, by core.Actor, player core.PlayerID, name core.NewPlayer) (core.Player, error) {
	return db.changePlayer(ctx, by, player, playerChange{
		action:      core.AuditPlayerRename,
		loggedValue: func(p core.Player) any { return p.Name },
		do: func(q querier, owner core.UserID) (core.Player, error) {
			renamed, err := updatePlayer(ctx, q, "rename a player", owner,
				statement{lockPlayer, []any{player}},
				statement{lockName, []any{name.Key}},
				statement{renamePlayer, []any{owner, player, name.Name, name.Key}},
			)
			if err == nil && renamed.Name != name.Name {
				err = errNameTaken
			}
			return renamed, err
		},
	})
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
func (db *DB) ClearPlayerTextures(ctx context.Context, by core.Actor, player core.PlayerID, skin, cape bool) (core.Player, error) {
	return db.changePlayer(ctx, by, player, playerChange{
		action:      core.AuditPlayerUndress,
		loggedValue: playerTexturesOf,
		do: func(q querier, owner core.UserID) (core.Player, error) {
			return updatePlayer(ctx, q, "clear the textures of a player", owner,
				statement{lockPlayer, []any{player}},
				statement{clearPlayerTextures, []any{owner, player, skin, cape}},
			)
		},
	})
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
func (db *DB) SetPlayerTextures(ctx context.Context, by core.Actor, player core.PlayerID, selection core.TextureSelection) (core.Player, error) {
	closet := "the owner's closet"
	if by.Owner {
		closet = "your closet"
	}
	return db.changePlayer(ctx, by, player, playerChange{
		action:      core.AuditPlayerDress,
		selection:   selection,
		loggedValue: playerTexturesOf,
		do: func(q querier, owner core.UserID) (core.Player, error) {
			rows, err := collect[struct {
				core.Player
				SkinViolation, CapeViolation string
			}](ctx, q,
				statement{lockTextures, []any{selection.Skin, selection.Cape}},
				statement{lockPlayer, []any{player}},
				statement{setPlayerTextures, []any{owner, player, selection.Skin, selection.Cape}},
			)
			row, err := one(rows, failure("apply textures", err), errNoPlayer)
			if err != nil {
				return core.Player{}, err
			}
			return row.Player, cmp.Or(
				checkOwner(row.Player, owner),
				violationError("skin", row.SkinViolation, selection.Skin, "a skin, of type steve or alex", closet),
				violationError("cape", row.CapeViolation, selection.Cape, "a cape", closet),
			)
		},
	})
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

// movePlayer clears private textures that are neither the new owner's nor in their closet. A
// refund is not passed on to another user. Tokens of the former owner end for good, and joins with them, also if
// the player is given back. Edges do not know owners, so a change is written only if a slot was
// cleared.
const movePlayer = withTarget + `quota AS (
		SELECT $4 = 0 OR uid = $3 OR (SELECT count(*) FROM players WHERE uid = $3) < $4 AS fits FROM target
	), allowed_textures AS (
		SELECT x.tid FROM textures x JOIN target t ON x.tid IN (t.tid_skin, t.tid_cape)
		WHERE x.public OR coalesce(x.uploader = $3, false) OR EXISTS (SELECT FROM closet_items c WHERE c.uid = $3 AND c.tid = x.tid)
	), new_slots AS (
		SELECT pid, (SELECT tid FROM allowed_textures WHERE tid = tid_skin) AS skin, (SELECT tid FROM allowed_textures WHERE tid = tid_cape) AS cape FROM target
	), slot_changes AS (
		SELECT t.pid, w.skin IS DISTINCT FROM t.tid_skin OR w.cape IS DISTINCT FROM t.tid_cape AS cleared FROM target t JOIN new_slots w USING (pid)
	), changed AS (
		UPDATE players p
		SET uid = $3, refund = CASE WHEN p.uid = $3 THEN p.refund END, tid_skin = w.skin, tid_cape = w.cape, last_modified = CASE WHEN u.cleared THEN clock_timestamp() ELSE p.last_modified END
		FROM target t, quota v, new_slots w, slot_changes u
		WHERE p.pid = t.pid AND t.uid = $1 AND v.fits
		RETURNING p.*
	), revoked_tokens AS (
		DELETE FROM launcher_tokens k USING changed c WHERE k.pid = c.pid AND k.uid <> c.uid
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed JOIN slot_changes USING (pid) WHERE cleared
	), result AS (` + selectChanged + `
	)
	SELECT result.*, fits FROM result, quota`

// MovePlayer gives a player to another user.
func (db *DB) MovePlayer(ctx context.Context, admin core.Actor, player core.PlayerID, owner core.UserID, quotas core.Quotas) (core.Player, error) {
	return db.moderatePlayer(ctx, admin, player, playerChange{
		action:      core.AuditPlayerMove,
		newOwner:    owner,
		loggedValue: func(p core.Player) any { return playerTextures{p.Owner, p.Skin, p.Cape} },
		do: func(q querier, before core.UserID) (core.Player, error) {
			rows, err := collect[struct {
				core.Player
				Fits bool
			}](ctx, q, statement{movePlayer, []any{before, player, owner, quotas.Players}})
			row, err := one(rows, err, errNoPlayer)
			if err == nil && !row.Fits {
				err = fault.New(fault.Refused, "User %d has %d players already, and may have no more.", owner, quotas.Players)
			}
			return row.Player, err
		},
	})
}

const selectFoundPlayers = `
	SELECT ` + playerColumns + `, (SELECT nickname FROM users WHERE users.uid = players.uid) AS owner_nickname,
		coalesce((SELECT t.name FROM textures t WHERE tid = tid_skin), '') AS skin_name,
		coalesce((SELECT t.name FROM textures t WHERE tid = tid_cape), '') AS cape_name
	FROM players WHERE pid = ANY ($1) ORDER BY pid DESC`

// FindPlayers lists players, the latest first.
func (db *DB) FindPlayers(ctx context.Context, query core.PlayerQuery) (core.Page[core.FoundPlayer], error) {
	var f filter
	if query.ID != 0 {
		f.add("pid = $%d", query.ID)
	}
	if query.Owner != 0 {
		f.add("uid = $%d", query.Owner)
	}
	if query.Name != "" {
		f.add("strpos(name_key, $%d) > 0", casefold.Key(query.Name))
	}
	result := core.Page[core.FoundPlayer]{}
	total, more, ids, err := db.find(ctx, "pid", "players", f, query.Page, query.PerPage)
	if err == nil {
		result.Total, result.More = total, more
		result.Items, err = collect[core.FoundPlayer](ctx, db.reads, statement{selectFoundPlayers, []any{ids}})
	}
	return result, failure("find players", err)
}
