package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.TextureAdminStore = (*DB)(nil)

// textureDetails are the details of a texture action in the audit log: name and uploader before
// it, and the changed fields.
type textureDetails struct {
	Name     string         `json:"name"`
	Uploader core.UserID    `json:"uploader"`
	From     *textureTraits `json:"from,omitempty"`
	To       *textureTraits `json:"to,omitempty"`
	// Reports are those that a deletion has settled, or the one that caused it.
	Reports []core.ReportID `json:"reports,omitempty"`
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
	rows, err := collect[textureRow](ctx, tx, statement{selectTexture, []any{tid}})
	texture, err := oneTexture(tid, rows, err)
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

// ChangeTextureBy changes a texture and everything that depends on it.
func (db *DB) ChangeTextureBy(
	ctx context.Context, admin core.Actor, tid core.TextureID, change core.TextureChange, scores core.Scores,
) (changed core.Texture, err error) {
	err = db.adminTx(ctx, "change a texture", func(tx pgx.Tx) error {
		admin, texture, err := authoriseOnTexture(ctx, tx, admin, tid, change.Hides())
		if err != nil {
			return err
		}
		pricing := core.Scores{}
		if texture.Uploader == admin.ID {
			pricing = scores
		}
		before, after, err := changeTexture(ctx, tx, tid, change, pricing)
		if err != nil {
			return err
		}
		changed = after
		return writeAudit(ctx, tx, admin, "texture.change", textureSubject(tid), textureDetails{
			Name: before.Name, Uploader: before.Uploader, From: traits(before), To: traits(changed),
		})
	})
	if collides(err) {
		return core.Texture{}, db.collision(ctx, tid, change)
	}
	return changed, err
}

// DeleteTextureBy deletes a texture and everything that depends on it.
func (db *DB) DeleteTextureBy(ctx context.Context, admin core.Actor, tid core.TextureID) error {
	return db.adminTx(ctx, "delete a texture", func(tx pgx.Tx) error {
		admin, before, err := authoriseOnTexture(ctx, tx, admin, tid, false)
		if err != nil {
			return err
		}
		if _, err := deleteTexture(ctx, tx, tid); err != nil {
			return err
		}
		settled, err := settleReportsAbout(ctx, tx, tid, 0, core.ReportDeleted)
		if err != nil {
			return err
		}
		details := textureDetails{Name: before.Name, Uploader: before.Uploader}
		for _, report := range settled {
			details.Reports = append(details.Reports, report.ID)
		}
		return writeAudit(ctx, tx, admin, "texture.delete", textureSubject(tid), details)
	})
}

func textureSubject(tid core.TextureID) string { return fmt.Sprintf("texture:%d", tid) }
