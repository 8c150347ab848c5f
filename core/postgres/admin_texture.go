package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.TextureAdminStore = (*DB)(nil)

// textureNote is what the audit log says of an act on a texture: what it was called
// and whose it was before, and what changed.
type textureNote struct {
	Name     string         `json:"name"`
	Uploader core.UserID    `json:"uploader"`
	From     *textureTraits `json:"from,omitempty"`
	To       *textureTraits `json:"to,omitempty"`
	// Reports are those that a deletion has settled, or that it is of.
	Reports []core.ReportID `json:"reports,omitempty"`
}

// textureTraits are what can be changed of a texture.
type textureTraits struct {
	Name   string    `json:"name"`
	Type   skin.Type `json:"type"`
	Public bool      `json:"public"`
}

func traits(t core.Texture) *textureTraits { return &textureTraits{t.Name, t.Type, t.Public} }

// overTexture makes sure that an actor may act on a texture, and returns the
// authority, and the texture. It locks the actor, and with them all users whose score the
// act may change or, with avatars, whose avatar. The uploader, which no texture ever
// changes, is among them. A texture without one is any administrator's to act on.
func overTexture(ctx context.Context, tx pgx.Tx, by core.Authority, tid core.TextureID, avatars bool) (core.Authority, core.Texture, error) {
	if err := lockScoresOf(ctx, tx, tid, avatars, by.Actor); err != nil {
		return core.Authority{}, core.Texture{}, err
	}
	rows, err := collect[textureRow](ctx, tx, statement{selectTexture, []any{tid}})
	texture, err := onlyTexture(tid, rows, err)
	if err != nil {
		return core.Authority{}, core.Texture{}, err
	}
	by, users, err := authorise(ctx, tx, by, texture.Uploader)
	if err != nil {
		return core.Authority{}, core.Texture{}, err
	}
	if uploader, ok := users[texture.Uploader]; ok {
		err = by.OverThingsOf(uploader)
	}
	return by, texture, err
}

// ChangeTextureBy changes a texture with all that follows.
func (db *DB) ChangeTextureBy(
	ctx context.Context, by core.Authority, tid core.TextureID, change core.TextureChange, scores core.Scores,
) (changed core.Texture, err error) {
	err = db.act(ctx, "change a texture", func(tx pgx.Tx) error {
		by, texture, err := overTexture(ctx, tx, by, tid, change.Hides())
		if err != nil {
			return err
		}
		prices := core.Scores{}
		if texture.Uploader == by.Actor {
			prices = scores
		}
		was, now, err := changeTexture(ctx, tx, tid, change, prices)
		if err != nil {
			return err
		}
		changed = now
		return note(ctx, tx, by, "texture.change", textureSubject(tid), textureNote{
			Name: was.Name, Uploader: was.Uploader, From: traits(was), To: traits(changed),
		})
	})
	if collides(err) {
		return core.Texture{}, db.collision(ctx, tid, change)
	}
	return changed, err
}

// DeleteTextureBy deletes a texture with all that follows.
func (db *DB) DeleteTextureBy(ctx context.Context, by core.Authority, tid core.TextureID) error {
	return db.act(ctx, "delete a texture", func(tx pgx.Tx) error {
		by, was, err := overTexture(ctx, tx, by, tid, false)
		if err != nil {
			return err
		}
		if _, err := deleteTexture(ctx, tx, tid); err != nil {
			return err
		}
		settled, err := settleAbout(ctx, tx, tid, 0, core.ReportDeleted)
		if err != nil {
			return err
		}
		said := textureNote{Name: was.Name, Uploader: was.Uploader}
		for _, report := range settled {
			said.Reports = append(said.Reports, report.ID)
		}
		return note(ctx, tx, by, "texture.delete", textureSubject(tid), said)
	})
}

func textureSubject(tid core.TextureID) string { return fmt.Sprintf("texture:%d", tid) }
