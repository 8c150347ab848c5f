package core

import "context"

// ClosetAdminStore reads and changes closets for administrators. Methods that change a closet first
// check Actor.CanModerateContentOf its user (Forbidden). They write one entry of the audit log with
// the change, and none with a failure. An unknown user is a NotFound fault.
type ClosetAdminStore interface {
	// ClosetOf lists items of a user's closet, the newest first.
	ClosetOf(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error)

	// AddClosetItemBy adds a texture, by the rules of AddClosetItem: the rights of the user count,
	// not those of the actor.
	AddClosetItemBy(ctx context.Context, by Actor, user UserID, texture TextureID, name string, pricing Pricing) error

	// RemoveClosetItemBy removes an item, as RemoveClosetItem does.
	RemoveClosetItemBy(ctx context.Context, by Actor, user UserID, texture TextureID) error
}

// Of returns a page of a user's closet, for an administrator. A page past the end is empty.
func (c *Closets) Of(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error) {
	if err := query.check(); err != nil {
		return ClosetPage{}, err
	}
	return c.store.ClosetOf(ctx, user, query)
}

// AddBy adds a texture to a user's closet under a name, for an administrator. It charges and
// rewards only in the administrator's own closet. The user must be allowed to have the texture.
func (c *Closets) AddBy(ctx context.Context, by Actor, user UserID, texture TextureID, itemName string) error {
	itemName, err := checkItem(texture, itemName)
	if err != nil {
		return err
	}
	pricing := c.pricing
	if user != by.ID {
		pricing = Pricing{Quotas: c.pricing.Quotas}
	}
	return c.store.AddClosetItemBy(ctx, by, user, texture, itemName, pricing)
}

// RemoveBy removes a texture from a user's closet, for an administrator.
func (c *Closets) RemoveBy(ctx context.Context, by Actor, user UserID, texture TextureID) error {
	return c.store.RemoveClosetItemBy(ctx, by, user, texture)
}
