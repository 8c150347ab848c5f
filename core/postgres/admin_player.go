package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.PlayerAdminStore = (*DB)(nil)

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

// playerAction is an administrator's action on a player.
type playerAction struct {
	action string
	// newOwner is the user that receives the player; 0 if the owner stays.
	newOwner core.UserID
	// selection has the textures to apply.
	selection core.TextureSelection
	// loggedValue returns the value that the action changes; nil if there is none to log.
	loggedValue func(core.Player) any
	do          func(tx pgx.Tx, before core.Player) (core.Player, error)
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

// runPlayerAction runs an action on a player, if the administrator may moderate the owner's
// content, and logs it. Locks are taken in the order users, textures, players, but the owner
// and the textures are known from the player only. So the player is read first, and must be
// unchanged once it is locked.
func (db *DB) runPlayerAction(ctx context.Context, admin core.Actor, player core.PlayerID, a playerAction) (after core.Player, err error) {
	err = db.adminTx(ctx, a.action, func(tx pgx.Tx) error {
		players, err := collect[core.Player](ctx, tx, statement{selectPlayer, []any{player}})
		seen, err := one(players, err, errNoPlayer)
		if err != nil {
			return err
		}
		if err := authoriseOnOwners(ctx, tx, &admin, seen.Owner, a.newOwner); err != nil {
			return err
		}
		players, err = collect[core.Player](ctx, tx,
			statement{lockPlayerTextures, []any{[]*core.TextureID{&seen.Skin, &seen.Cape, a.selection.Skin, a.selection.Cape}}},
			statement{selectAndLockPlayer, []any{player}},
		)
		before, err := one(players, err, errNoPlayer)
		switch {
		case err != nil:
			return err
		case before != seen:
			return errConcurrentChange
		}
		if after, err = a.do(tx, before); err != nil {
			return err
		}
		details := playerDetails{Name: before.Name, UID: before.Owner}
		if a.loggedValue != nil {
			details.From, details.To = a.loggedValue(before), a.loggedValue(after)
		}
		return writeAudit(ctx, tx, admin, a.action, fmt.Sprintf("player:%d", player), details)
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

// RenamePlayerBy renames a player.
func (db *DB) RenamePlayerBy(ctx context.Context, admin core.Actor, player core.PlayerID, name core.NewPlayer) (core.Player, error) {
	return db.runPlayerAction(ctx, admin, player, playerAction{
		action:      "player.rename",
		loggedValue: func(p core.Player) any { return p.Name },
		do: func(tx pgx.Tx, before core.Player) (core.Player, error) {
			return rename(ctx, tx, before.Owner, player, name)
		},
	})
}

// movePlayer clears private textures that are neither the new owner's nor in their closet. A
// refund is not passed on to another user. Tokens and joins of the former owner end for good, also if
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
	), ended_joins AS (
		DELETE FROM game_joins g USING changed c, target t WHERE g.pid = c.pid AND t.uid <> c.uid
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed JOIN slot_changes USING (pid) WHERE cleared
	), result AS (` + selectChanged + `
	)
	SELECT result.*, fits FROM result, quota`

// MovePlayerBy gives a player to another user.
func (db *DB) MovePlayerBy(ctx context.Context, admin core.Actor, player core.PlayerID, owner core.UserID, quotas core.Quotas) (core.Player, error) {
	return db.runPlayerAction(ctx, admin, player, playerAction{
		action:      "player.move",
		newOwner:    owner,
		loggedValue: func(p core.Player) any { return playerTextures{p.Owner, p.Skin, p.Cape} },
		do: func(tx pgx.Tx, before core.Player) (core.Player, error) {
			rows, err := collect[struct {
				core.Player
				Fits bool
			}](ctx, tx, statement{movePlayer, []any{before.Owner, player, owner, quotas.Players}})
			row, err := one(rows, err, errNoPlayer)
			if err == nil && !row.Fits {
				err = fault.New(fault.Refused, "User %d has %d players already, and may have no more.", owner, quotas.Players)
			}
			return row.Player, err
		},
	})
}

// SetPlayerTexturesBy applies textures.
func (db *DB) SetPlayerTexturesBy(ctx context.Context, admin core.Actor, player core.PlayerID, selection core.TextureSelection) (core.Player, error) {
	return db.runPlayerAction(ctx, admin, player, playerAction{
		action:      "player.dress",
		selection:   selection,
		loggedValue: playerTexturesOf,
		do: func(tx pgx.Tx, before core.Player) (core.Player, error) {
			return applyTextures(ctx, tx, before.Owner, player, selection, "the owner's closet")
		},
	})
}

// ClearPlayerTexturesBy empties slots.
func (db *DB) ClearPlayerTexturesBy(ctx context.Context, admin core.Actor, player core.PlayerID, skin, cape bool) (core.Player, error) {
	return db.runPlayerAction(ctx, admin, player, playerAction{
		action:      "player.undress",
		loggedValue: playerTexturesOf,
		do: func(tx pgx.Tx, before core.Player) (core.Player, error) {
			return changePlayer(ctx, tx, "clear the textures of a player", clearPlayerTextures, before.Owner, player, skin, cape)
		},
	})
}

// DeletePlayerBy removes a player.
func (db *DB) DeletePlayerBy(ctx context.Context, admin core.Actor, player core.PlayerID) error {
	_, err := db.runPlayerAction(ctx, admin, player, playerAction{
		action: "player.delete",
		do: func(tx pgx.Tx, before core.Player) (core.Player, error) {
			return changePlayer(ctx, tx, "delete a player", deletePlayer, before.Owner, player)
		},
	})
	return err
}

const selectFoundPlayers = `
	SELECT ` + playerColumns + `, (SELECT nickname FROM users WHERE users.uid = players.uid) AS owner_nickname
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
