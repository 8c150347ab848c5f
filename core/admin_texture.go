package core

import "context"

// TextureAdminStore changes textures for administrators. Each method first checks
// Actor.CanModerateContentOf the uploader (Forbidden); a texture without an uploader passes. It
// writes one entry of the audit log with the change, and none with a failure. An unknown texture is
// a NotFound fault.
type TextureAdminStore interface {
	// ChangeTextureBy changes a texture, as ChangeTexture does. It charges or refunds only for the
	// actor's own texture.
	ChangeTextureBy(ctx context.Context, by Actor, texture TextureID, change TextureChange, scores Scores) (Texture, error)

	// DeleteTextureBy deletes a texture, as DeleteTexture does. It settles open reports about the
	// texture and notifies their reporters.
	DeleteTextureBy(ctx context.Context, by Actor, texture TextureID) error
}

// ChangeBy changes a texture, and all that refers to it, for an administrator.
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

// DeleteBy deletes a texture, and all that refers to it, for an administrator. It settles the
// reports about the texture.
func (t *Textures) DeleteBy(ctx context.Context, by Actor, tid TextureID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.DeleteTextureBy(ctx, by, tid)
}
