package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/fold"
)

var _ core.PlayerAdminStore = (*DB)(nil)

// playerNote is what the audit log says of an act on a player: what it was called
// and whose it was before, and what changed.
type playerNote struct {
	Name string      `json:"name"`
	UID  core.UserID `json:"uid"`
	From any         `json:"from,omitempty"`
	To   any         `json:"to,omitempty"`
}

// outfit is what a player wears, and whose it is where that changes, for the log.
type outfit struct {
	UID  core.UserID    `json:"uid,omitempty"`
	Skin core.TextureID `json:"skin"`
	Cape core.TextureID `json:"cape"`
}

// wornBy returns what a player wears.
func wornBy(p core.Player) any { return outfit{Skin: p.Skin, Cape: p.Cape} }

// playerAct is an act on a player.
type playerAct struct {
	action string
	// to is the user who gets the player; 0 when it stays with its owner.
	to core.UserID
	// slots are textures to be put on.
	slots core.Slots
	// changed is what of a player changes; nil where that is nothing to tell.
	changed func(core.Player) any
	do      func(tx pgx.Tx, was core.Player) (core.Player, error)
}

const (
	selectPlayer = `SELECT ` + playerColumns + ` FROM players WHERE pid = $1`

	selectAndLockPlayer = selectPlayer + ` FOR UPDATE`

	lockOutfit = `SELECT tid FROM textures WHERE tid = ANY ($1) ORDER BY tid FOR SHARE`
)

// errOvertaken is the fault of an act on what was changed, time and again, between
// the look at it and the lock on it.
var errOvertaken = &fault.Error{
	Kind: fault.Unavailable, Message: "Somebody else is changing this at the moment. Please try again.", RetryAfter: time.Second,
}

// actOnPlayer does an act on a player whose owner's things the actor may act on,
// and notes it. Users come before textures, and textures before players, in every
// order of locks, but whose player it is and what it wears only the player tells:
// so it is looked at first, and must be the same once it is locked.
func (db *DB) actOnPlayer(ctx context.Context, by core.Authority, player core.PlayerID, a playerAct) (now core.Player, err error) {
	err = db.act(ctx, a.action, func(tx pgx.Tx) error {
		players, err := collect[core.Player](ctx, tx, statement{selectPlayer, []any{player}})
		seen, err := only(players, err, errNoPlayer)
		if err != nil {
			return err
		}
		if err := ownersAllow(ctx, tx, &by, seen.Owner, a.to); err != nil {
			return err
		}
		players, err = collect[core.Player](ctx, tx,
			statement{lockOutfit, []any{[]*core.TextureID{&seen.Skin, &seen.Cape, a.slots.Skin, a.slots.Cape}}},
			statement{selectAndLockPlayer, []any{player}},
		)
		was, err := only(players, err, errNoPlayer)
		switch {
		case err != nil:
			return err
		case was != seen:
			return errOvertaken
		}
		if now, err = a.do(tx, was); err != nil {
			return err
		}
		said := playerNote{Name: was.Name, UID: was.Owner}
		if a.changed != nil {
			said.From, said.To = a.changed(was), a.changed(now)
		}
		return note(ctx, tx, by, a.action, fmt.Sprintf("player:%d", player), said)
	})
	return now, err
}

// ownersAllow returns a fault unless the actor may act on what a player's owner
// has, and, if the player is moved, on what the one has who gets it.
func ownersAllow(ctx context.Context, tx pgx.Tx, by *core.Authority, owner, to core.UserID) error {
	about := []core.UserID{owner}
	if to != 0 {
		about = append(about, to)
	}
	now, users, err := authorise(ctx, tx, *by, about...)
	if err != nil {
		return err
	}
	*by = now
	for _, uid := range about {
		user, ok := users[uid]
		switch {
		case !ok && uid == owner:
			return errOvertaken // whoever deleted the owner deleted the player
		case !ok:
			return noUser(uid)
		}
		if err := now.OverThingsOf(user); err != nil {
			return err
		}
	}
	return nil
}

// RenamePlayerBy renames a player.
func (db *DB) RenamePlayerBy(ctx context.Context, by core.Authority, player core.PlayerID, name core.NewPlayer) (core.Player, error) {
	return db.actOnPlayer(ctx, by, player, playerAct{
		action:  "player.rename",
		changed: func(p core.Player) any { return p.Name },
		do: func(tx pgx.Tx, was core.Player) (core.Player, error) {
			return rename(ctx, tx, was.Owner, player, name)
		},
	})
}

// movePlayer takes off what is private, and neither the new owner's nor in their
// closet. What one user paid is not given back to another. Edges do not know whose a player is, so they need hear of nothing else.
const movePlayer = withTarget + `verdict AS (
		SELECT $4 = 0 OR uid = $3 OR (SELECT count(*) FROM players WHERE uid = $3) < $4 AS fits FROM target
	), kept AS (
		SELECT x.tid FROM textures x JOIN target t ON x.tid IN (t.tid_skin, t.tid_cape)
		WHERE x.public OR coalesce(x.uploader = $3, false) OR EXISTS (SELECT FROM closet_items c WHERE c.uid = $3 AND c.tid = x.tid)
	), worn AS (
		SELECT pid, (SELECT tid FROM kept WHERE tid = tid_skin) AS skin, (SELECT tid FROM kept WHERE tid = tid_cape) AS cape FROM target
	), undressed AS (
		SELECT t.pid, w.skin IS DISTINCT FROM t.tid_skin OR w.cape IS DISTINCT FROM t.tid_cape AS lost FROM target t JOIN worn w USING (pid)
	), changed AS (
		UPDATE players p
		SET uid = $3, refund = CASE WHEN p.uid = $3 THEN p.refund END, tid_skin = w.skin, tid_cape = w.cape, last_modified = CASE WHEN u.lost THEN clock_timestamp() ELSE p.last_modified END
		FROM target t, verdict v, worn w, undressed u
		WHERE p.pid = t.pid AND t.uid = $1 AND v.fits
		RETURNING p.*
	), noted AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM changed JOIN undressed USING (pid) WHERE lost
	), result AS (` + selectChanged + `
	)
	SELECT result.*, fits FROM result, verdict`

// MovePlayerBy gives a player to another user.
func (db *DB) MovePlayerBy(ctx context.Context, by core.Authority, player core.PlayerID, owner core.UserID, quotas core.Quotas) (core.Player, error) {
	return db.actOnPlayer(ctx, by, player, playerAct{
		action:  "player.move",
		to:      owner,
		changed: func(p core.Player) any { return outfit{p.Owner, p.Skin, p.Cape} },
		do: func(tx pgx.Tx, was core.Player) (core.Player, error) {
			rows, err := collect[struct {
				core.Player
				Fits bool
			}](ctx, tx, statement{movePlayer, []any{was.Owner, player, owner, quotas.Players}})
			row, err := only(rows, err, errNoPlayer)
			if err == nil && !row.Fits {
				err = fault.New(fault.Refused, "User %d has %d players already, and may have no more.", owner, quotas.Players)
			}
			return row.Player, err
		},
	})
}

// DressPlayerBy applies textures.
func (db *DB) DressPlayerBy(ctx context.Context, by core.Authority, player core.PlayerID, slots core.Slots) (core.Player, error) {
	return db.actOnPlayer(ctx, by, player, playerAct{
		action:  "player.dress",
		slots:   slots,
		changed: wornBy,
		do: func(tx pgx.Tx, was core.Player) (core.Player, error) {
			return dress(ctx, tx, was.Owner, player, slots, "the owner's closet")
		},
	})
}

// UndressPlayerBy empties slots.
func (db *DB) UndressPlayerBy(ctx context.Context, by core.Authority, player core.PlayerID, skin, cape bool) (core.Player, error) {
	return db.actOnPlayer(ctx, by, player, playerAct{
		action:  "player.undress",
		changed: wornBy,
		do: func(tx pgx.Tx, was core.Player) (core.Player, error) {
			return changePlayer(ctx, tx, "undress a player", undressPlayer, was.Owner, player, skin, cape)
		},
	})
}

// DeletePlayerBy removes a player.
func (db *DB) DeletePlayerBy(ctx context.Context, by core.Authority, player core.PlayerID) error {
	_, err := db.actOnPlayer(ctx, by, player, playerAct{
		action: "player.delete",
		do: func(tx pgx.Tx, was core.Player) (core.Player, error) {
			return changePlayer(ctx, tx, "delete a player", deletePlayer, was.Owner, player)
		},
	})
	return err
}

const selectFoundPlayers = `SELECT ` + playerColumns + ` FROM players WHERE pid = ANY ($1) ORDER BY pid DESC`

// FindPlayers lists players, the latest first.
func (db *DB) FindPlayers(ctx context.Context, query core.PlayerQuery) (core.Found[core.Player], error) {
	var f filter
	if query.ID != 0 {
		f.add("pid = $%d", query.ID)
	}
	if query.Owner != 0 {
		f.add("uid = $%d", query.Owner)
	}
	if query.Name != "" {
		f.add("strpos(name_key, $%d) > 0", fold.Key(query.Name))
	}
	found := core.Found[core.Player]{}
	total, more, ids, err := db.find(ctx, "pid", "players", f, query.Page, query.PerPage)
	if err == nil {
		found.Total, found.More = total, more
		found.Items, err = collect[core.Player](ctx, db.reads, statement{selectFoundPlayers, []any{ids}})
	}
	return found, failure("find players", err)
}
