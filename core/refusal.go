package core

import (
	"context"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Refusal refuses the pixels of a removed texture to all but administrators.
type Refusal struct {
	Texture   TextureID // that was removed
	Name      string
	Type      skin.Type
	RefusedAt time.Time
	RefusedBy UserID // 0 when deleted

	RefusedByNickname string // empty when deleted
}

// RefusalStore holds refusals. TextureStore.DeleteTexture and ReportStore.SettleReport add them.
type RefusalStore interface {
	// Refusals lists refusals, the latest texture first.
	Refusals(ctx context.Context, page, perPage int) (Page[Refusal], error)

	// LiftRefusal deletes a refusal by its texture, for an administrator. An unknown one is a NotFound fault.
	LiftRefusal(ctx context.Context, by Actor, texture TextureID) error
}

// ErrRefusedPixels is the fault of an upload of pixels that are refused.
var ErrRefusedPixels = fault.New(fault.Refused, "The administrators have removed this picture. It cannot be uploaded again.")

// Refusals returns a page of the refused pixels, the latest first.
func (t *Textures) Refusals(ctx context.Context, page, perPage int) (Page[Refusal], error) {
	var wrong fieldFaults
	wrong.addPage(page, perPage, MaxSearchPage)
	if err := wrong.fault(); err != nil {
		return Page[Refusal]{}, err
	}
	return t.store.Refusals(ctx, page, perPage)
}

// LiftRefusal allows the pixels of a removed texture again.
func (t *Textures) LiftRefusal(ctx context.Context, by Actor, texture TextureID) error {
	return t.store.LiftRefusal(ctx, by, texture)
}
