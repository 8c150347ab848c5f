package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

// A texture may be in a million closets and worn by a million players. So the statements below
// neither take nor return a list of rows: the database does it all, and spills to disk what
// does not fit its memory.
//
// Locks are taken in the usual order: by uid the users that get or pay score and the
// administrator, then the texture, then players by pid. Closet items need no lock of their own:
// every change of one locks its texture first.

// lockWholeTexture waits for transactions that add the texture to a closet or to a player, and
// blocks later ones.
const lockWholeTexture = `SELECT ` + textureColumns + ` FROM textures t WHERE tid = $1 FOR UPDATE`

// lockPlayersWearing also blocks renames, until the names are written to changes.
const lockPlayersWearing = `
	SELECT count(*) FROM (
		SELECT FROM players WHERE tid_skin = $1 OR tid_cape = $1 ORDER BY pid FOR UPDATE
	) locked`

// insertChanges writes a change for every 20 rows, since a change costs far more than a key.
// The bound keeps the lines of the change stream short.
func insertChanges(rows, keys string) string {
	return `
	INSERT INTO changes (keys)
	SELECT array_agg(key)
	FROM (SELECT *, (row_number() OVER () - 1) / 20 AS part FROM ` + rows + `) numbered, unnest(` + keys + `) AS key
	GROUP BY part`
}

// clearPlayers skips the players of user $2, if not NULL.
var clearPlayers = `
	WITH cleared_players AS (
		UPDATE players SET tid_skin = nullif(tid_skin, $1), tid_cape = nullif(tid_cape, $1), last_modified = clock_timestamp()
		WHERE (tid_skin = $1 OR tid_cape = $1) AND uid IS DISTINCT FROM $2::bigint
		RETURNING pid, name_key, uuid
	)` + insertChanges("cleared_players", playerKeys)

var notifyPlayers = insertChanges("(SELECT pid, name_key, uuid FROM players WHERE tid_skin = $1 OR tid_cape = $1) wearing", playerKeys)

// clearAvatars skips user $2, if not NULL. All others lose the right to a texture that becomes
// private, since it is removed from their closets.
var clearAvatars = `
	WITH cleared AS (
		UPDATE users SET avatar = 0 WHERE avatar = $1 AND avatar <> 0 AND uid IS DISTINCT FROM $2::bigint
		RETURNING uid
	)` + insertChanges("cleared", "ARRAY['uid:' || uid]")

// notifyAvatars writes changes for the users with the texture as avatar.
var notifyAvatars = insertChanges("(SELECT uid FROM users WHERE avatar = $1 AND avatar <> 0) with_avatar", "ARRAY['uid:' || uid]")

const (
	notifyTexture = `
	INSERT INTO changes (keys) SELECT ARRAY['tid:' || tid, 'hash:' || encode(hash, 'hex')] FROM textures WHERE tid = $1`

	// emptyClosets skips the closet of user $2, if not NULL.
	emptyClosets = `DELETE FROM closet_items WHERE tid = $1 AND uid IS DISTINCT FROM $2::bigint`

	deleteTextureRow = `DELETE FROM textures WHERE tid = $1`
)

// deleteTexture deletes a texture and everything that depends on it. It returns the texture as
// it was, or a NotFound fault. With refuse, the administrator refuses its pixels. The caller locks users before and players after, and calls
// onChange after the commit.
func deleteTexture(ctx context.Context, tx pgx.Tx, by core.Actor, tid core.TextureID, refuse bool) (before core.Texture, err error) {
	if err := lockAffectedUsers(ctx, tx, tid, false); err != nil {
		return before, err
	}
	if before, err = lockTextureIn(ctx, tx, tid); err != nil {
		return before, err
	}
	if _, err := tx.Exec(ctx, refundPrice, tid); err != nil {
		return before, err
	}
	if err := refundClosets(ctx, tx, tid, nil); err != nil {
		return before, err
	}
	var batch pgx.Batch
	if refuse {
		batch.Queue(insertRefusal, tid, by.ID)
	}
	batch.Queue(lockPlayersWearing, tid)
	batch.Queue(clearPlayers, tid, nil)
	batch.Queue(notifyAvatars, tid)
	batch.Queue(notifyTexture, tid)
	batch.Queue(emptyClosets, tid, nil)
	batch.Queue(deleteTextureRow, tid)
	return before, tx.SendBatch(ctx, &batch).Close()
}

// lockTextureIn locks a texture until the transaction ends, and returns its current state, or a
// NotFound fault.
func lockTextureIn(ctx context.Context, tx pgx.Tx, tid core.TextureID) (core.Texture, error) {
	locked, err := collect[core.Texture](ctx, tx, statement{lockWholeTexture, []any{tid}})
	return one(locked, err, noTexture(tid))
}

// textureDetails are the details of a texture action in the audit log: name and uploader before
// it, and the changed fields.
type textureDetails struct {
	Name     string         `json:"name"`
	Uploader core.UserID    `json:"uploader"`
	From     *textureTraits `json:"from,omitempty"`
	To       *textureTraits `json:"to,omitempty"`
	// Reports are those that a deletion has settled, or the one that caused it.
	Reports []core.ReportID `json:"reports,omitempty"`
	Refused bool            `json:"refused,omitempty"` // the pixels
}

// textureTraits are the fields of a texture that can be changed.
type textureTraits struct {
	Name   string    `json:"name"`
	Type   skin.Type `json:"type"`
	Public bool      `json:"public"`
}

func traits(t core.Texture) *textureTraits { return &textureTraits{t.Name, t.Type, t.Public} }

// authoriseOnTexture returns a fault unless the administrator may moderate the texture. It
// locks the administrator, the uploader, and all users that the action may change the score of
// or, with avatars, the avatar. The uploader of a texture never changes. Any administrator may
// moderate a texture without one.
func authoriseOnTexture(ctx context.Context, tx pgx.Tx, admin core.Actor, tid core.TextureID, avatars bool) (core.Actor, core.Texture, error) {
	if err := lockAffectedUsers(ctx, tx, tid, avatars, admin.ID); err != nil {
		return core.Actor{}, core.Texture{}, err
	}
	textures, err := collect[core.Texture](ctx, tx, statement{selectTexture, []any{tid}})
	texture, err := one(textures, err, noTexture(tid))
	if err != nil {
		return core.Actor{}, core.Texture{}, err
	}
	admin, users, err := authorise(ctx, tx, admin, texture.Uploader)
	if err != nil {
		return core.Actor{}, core.Texture{}, err
	}
	if uploader, ok := users[texture.Uploader]; ok {
		err = admin.CanModerateContentOf(uploader)
	}
	return admin, texture, err
}

// asActorOn runs a change of a texture as one transaction: as its uploader, or as an administrator,
// whose change is logged. avatars is an argument of authoriseOnTexture.
func (db *DB) asActorOn(
	ctx context.Context, by core.Actor, tid core.TextureID, operation string, action core.AuditAction, avatars bool,
	do func(tx pgx.Tx, isUploader bool) (textureDetails, error),
) error {
	err := db.writes.transact(ctx, func(tx pgx.Tx) error {
		if by.Owner {
			_, err := do(tx, true)
			return err
		}
		admin, texture, err := authoriseOnTexture(ctx, tx, by, tid, avatars)
		if err != nil {
			return err
		}
		details, err := do(tx, texture.Uploader == admin.ID)
		if err != nil {
			return err
		}
		return writeAudit(ctx, tx, admin, action, textureSubject(tid), details)
	})
	if err != nil {
		return failure(operation, err)
	}
	db.onChange()
	return nil
}

func textureSubject(tid core.TextureID) string { return fmt.Sprintf("texture:%d", tid) }

// DeleteTexture deletes a texture and everything that depends on it. An administrator also settles
// the reports about it.
func (db *DB) DeleteTexture(ctx context.Context, by core.Actor, tid core.TextureID, refuse bool) error {
	return db.asActorOn(ctx, by, tid, "delete a texture", core.AuditTextureDelete, false, func(tx pgx.Tx, _ bool) (details textureDetails, err error) {
		before, err := deleteTexture(ctx, tx, by, tid, refuse)
		if err != nil || by.Owner {
			return details, err
		}
		settled, err := settleReportsAbout(ctx, tx, core.Report{Texture: tid, TextureName: before.Name}, core.ReportDeleted)
		details = textureDetails{Name: before.Name, Uploader: before.Uploader, Refused: refuse}
		for _, report := range settled {
			details.Reports = append(details.Reports, report.ID)
		}
		return details, err
	})
}

// updateTexture counts the likes anew if closets were emptied.
const updateTexture = `
	UPDATE textures t SET
		name = coalesce($2, name), name_key = coalesce($6, name_key), type = coalesce($3, type), public = coalesce($4, public),
		likes = CASE WHEN $5 THEN (SELECT count(*) FROM closet_items c WHERE c.tid = t.tid) ELSE likes END
	WHERE tid = $1
	RETURNING ` + textureColumns

var selectRefused = `
	SELECT ` + isRefused("t.pixels") + ` AS refused FROM users u, textures t WHERE u.uid = $1 AND t.tid = $2`

// checkNotRefused returns ErrRefusedPixels if the pixels of a texture are refused to a user. It comes after the texture has
// become public, which waits for the deletion of a public one with the same pixels.
func checkNotRefused(ctx context.Context, tx pgx.Tx, user core.UserID, tid core.TextureID) error {
	rows, err := collect[struct{ Refused bool }](ctx, tx, statement{selectRefused, []any{user, tid}})
	if err == nil && len(rows) > 0 && rows[0].Refused {
		err = core.ErrRefusedPixels
	}
	return err
}

// changeTexture changes a texture and everything that depends on it. It returns the texture
// before and after, or a NotFound fault. It locks as deleteTexture does, and the caller calls
// onChange after the commit.
func changeTexture(
	ctx context.Context, tx pgx.Tx, tid core.TextureID, change core.TextureChange, prices core.ScorePrices,
) (before, after core.Texture, err error) {
	if change.Public != nil {
		if err := lockAffectedUsers(ctx, tx, tid, change.Hides()); err != nil {
			return before, after, err
		}
	}
	if before, err = lockTextureIn(ctx, tx, tid); err != nil {
		return before, after, err
	}
	hides := change.Hides() && before.Public
	if change.Public != nil {
		if err := chargeVisibilityChange(ctx, tx, tid, *change.Public, prices); err != nil {
			return before, after, err
		}
	}
	if hides {
		if err := refundClosets(ctx, tx, tid, &before.Uploader); err != nil {
			return before, after, err
		}
	}
	var key *string
	if change.Name != nil {
		key = new(NameKey(*change.Name))
	}
	var changed []core.Texture
	var batch pgx.Batch
	queueCascade(&batch, change, before)
	statement{updateTexture, []any{tid, change.Name, change.Type, change.Public, hides, key}}.queue(&batch).Query(collectInto(&changed))
	err = tx.SendBatch(ctx, &batch).Close()
	after, err = one(changed, err, noTexture(tid))
	return before, after, err
}

// queueCascade queues what a change of a texture does to users, players and closets.
func queueCascade(batch *pgx.Batch, change core.TextureChange, before core.Texture) {
	hides := change.Hides() && before.Public
	retypes := change.Type != nil && *change.Type != before.Type
	if hides {
		// uid 0, of a deleted uploader, matches no user.
		batch.Queue(clearAvatars, before.ID, before.Uploader)
	}
	appears := publishes(change, before) && !hides
	if hides || retypes || appears {
		batch.Queue(lockPlayersWearing, before.ID)
	}
	if hides {
		batch.Queue(clearPlayers, before.ID, before.Uploader)
		batch.Queue(emptyClosets, before.ID, before.Uploader)
	}
	if retypes || publishes(change, before) {
		batch.Queue(notifyTexture, before.ID)
	}
	if retypes || appears { // pages of players show its name from then on
		batch.Queue(notifyPlayers, before.ID)
	}
	if retypes {
		batch.Queue(notifyAvatars, before.ID)
	}
}

// publishes reports whether a change makes a private texture public, or a public one private.
func publishes(change core.TextureChange, before core.Texture) bool {
	return change.Public != nil && *change.Public != before.Public
}

// ChangeTexture changes a texture and everything that depends on it. Administrators change textures of
// others at no cost.
func (db *DB) ChangeTexture(
	ctx context.Context, by core.Actor, tid core.TextureID, change core.TextureChange, prices core.ScorePrices,
) (changed core.Texture, err error) {
	do := func(tx pgx.Tx, isUploader bool) (textureDetails, error) {
		charged := core.ScorePrices{}
		if isUploader {
			charged = prices
		}
		before, after, err := changeTexture(ctx, tx, tid, change, charged)
		changed = after
		if err == nil && change.Public != nil && *change.Public {
			err = checkNotRefused(ctx, tx, by.ID, tid)
		}
		return textureDetails{Name: before.Name, Uploader: before.Uploader, From: traits(before), To: traits(after)}, err
	}
	err = db.asActorOn(ctx, by, tid, "change a texture", core.AuditTextureChange, change.Hides(), do)
	switch {
	case collides(err):
		return core.Texture{}, db.collision(ctx, tid, change)
	case err != nil:
		return core.Texture{}, err
	default:
		return changed, nil
	}
}

// collides reports whether a change failed because such a texture exists.
func collides(err error) bool {
	constraint := violatedConstraint(err)
	return constraint == "textures_public_pixels" || constraint == "textures_uploader_pixels"
}

// selectCollision selects the texture that a change would duplicate.
const selectCollision = `
	SELECT o.tid FROM textures t JOIN textures o ON o.pixels = t.pixels AND o.tid <> t.tid
	WHERE t.tid = $1 AND o.type = coalesce($2, t.type) AND (o.public AND coalesce($3, t.public) OR o.uploader = t.uploader)
	ORDER BY o.tid LIMIT 1`

// collision returns the Duplicate fault of a change that would duplicate another texture.
func (db *DB) collision(ctx context.Context, tid core.TextureID, change core.TextureChange) error {
	field := "public"
	if change.Type != nil {
		field = "type"
	}
	others, err := collect[struct{ TID core.TextureID }](ctx, db.reads, statement{selectCollision, []any{tid, change.Type, change.Public}})
	other, err := one(others, failure("look for the same pixels", err), errConflictGone)
	if err != nil {
		return err
	}
	return core.ErrDuplicateChange(field, other.TID)
}
