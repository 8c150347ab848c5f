package core

import "context"

// TextureAdminStore changes textures for administrators. Each method makes sure
// first that the authority is over the uploader, or the texture the actor's own or
// nobody's, else it returns a Forbidden fault; NotFound without such a texture. With
// the change it writes one entry of the audit log, and with a failure none.
type TextureAdminStore interface {
	// ChangeTextureBy changes a texture, as ChangeTexture does. It moves no cost but
	// for what is the actor's own.
	ChangeTextureBy(ctx context.Context, by Actor, texture TextureID, change TextureChange, scores Scores) (Texture, error)

	// DeleteTextureBy deletes a texture, as DeleteTexture does. Open reports about it
	// are settled, and who made them is notified.
	DeleteTextureBy(ctx context.Context, by Actor, texture TextureID) error
}

// ChangeBy has an administrator change a texture, with all that follows.
func (t *Textures) ChangeBy(ctx context.Context, by Actor, tid TextureID, change TextureChange) (Texture, error) {
	if err := change.check(); err != nil {
		return Texture{}, err
	}
	if change.Type != nil {
		texture, err := t.store.Texture(ctx, tid)
		if err != nil {
			return Texture{}, err
		}
		if err := t.checkTypeChange(ctx, texture, *change.Type); err != nil {
			return Texture{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.ChangeTextureBy(ctx, by, tid, change, t.scores)
}

// DeleteBy has an administrator delete a texture, with all that follows. What was
// reported about it is settled by that.
func (t *Textures) DeleteBy(ctx context.Context, by Actor, tid TextureID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.DeleteTextureBy(ctx, by, tid)
}
