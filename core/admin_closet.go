package core

import "context"

// ClosetAdminStore looks into closets and changes them for administrators. Methods
// that change one make sure first that the authority is over the user, or the
// closet the actor's own, else they return a Forbidden fault. With the change they
// write one entry of the audit log, and with a failure none. Without such a user
// all return a NotFound fault.
type ClosetAdminStore interface {
	// ClosetOf lists items of a user's closet, the newest first.
	ClosetOf(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error)

	// AddClosetItemBy adds a texture, by the rules of AddClosetItem: what holds is
	// what the user may keep, not the actor.
	AddClosetItemBy(ctx context.Context, by Actor, user UserID, texture TextureID, name string, pricing Pricing) error

	// RemoveClosetItemBy removes an item, as RemoveClosetItem does.
	RemoveClosetItemBy(ctx context.Context, by Actor, user UserID, texture TextureID) error
}

// Of returns a page of a user's closet, for an administrator. A page past the end is
// empty.
func (c *Closets) Of(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error) {
	if err := query.check(); err != nil {
		return ClosetPage{}, err
	}
	return c.store.ClosetOf(ctx, user, query)
}

// AddBy has an administrator put a texture into a user's closet under a name, which
// costs and earns nobody anything but in a closet of the administrator's own. What the
// user may not keep they cannot be given.
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

// RemoveBy has an administrator take a texture out of a user's closet.
func (c *Closets) RemoveBy(ctx context.Context, by Actor, user UserID, texture TextureID) error {
	return c.store.RemoveClosetItemBy(ctx, by, user, texture)
}
