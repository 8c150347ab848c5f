package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
)

// ClosetItem is a texture in a user's closet, under a name that the user chose.
type ClosetItem struct {
	Texture
	ItemName string
}

// ClosetQuery selects items of a closet.
type ClosetQuery struct {
	Capes   bool   // capes instead of skins
	Name    string // part of the item's name, case-insensitive; empty for all
	ByName  bool   // in the order of their names, instead of the newest first
	Page    int    // from 1
	PerPage int
}

// ClosetPage is a page of the Total items that match a query.
type ClosetPage struct {
	Items []ClosetItem
	Total int
}

// ClosetStore holds closets. A texture's likes are the number of closets it is in. Methods that take
// an actor first check Actor.CanModerateContentOf the user (Forbidden), unless the actor is the owner;
// an unknown user is then a NotFound fault. The rights of the user count, not the actor's.
type ClosetStore interface {
	// Closet lists items of the closet of the token's user, the newest first.
	Closet(ctx context.Context, token VerifiedToken, query ClosetQuery) (ClosetPage, error)

	// ClosetOf lists items of a user's closet as Closet does. An unknown user is a NotFound fault.
	ClosetOf(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error)

	// AddClosetItem adds a texture. It must exist (NotFound) and be public, unless the user
	// uploaded it or is an administrator (Forbidden). It returns a Duplicate fault when the item is
	// there already, a Refused one when the closet is full, and a ScoreTooLow one when the user
	// cannot pay.
	AddClosetItem(ctx context.Context, by Actor, user UserID, texture TextureID, name string, pricing Pricing) error

	// RenameClosetItem renames an item; an unknown item is a NotFound fault.
	RenameClosetItem(ctx context.Context, user UserID, texture TextureID, name string) error

	// RemoveClosetItem removes an item; an unknown item is a NotFound fault. A private texture of
	// another uploader is taken off the user's players, since the user may no longer use it.
	RemoveClosetItem(ctx context.Context, by Actor, user UserID, texture TextureID) error
}

// Closets are the users' collections of textures.
type Closets struct {
	store   ClosetStore
	pricing Pricing
}

// NewClosets returns the closets of a store.
func NewClosets(store ClosetStore, quotas Quotas, prices ScorePrices) *Closets {
	return &Closets{store: store, pricing: Pricing{
		Quotas: quotas, Cost: prices.ClosetItem, Refund: prices.RefundClosetItem, Reward: prices.LikeReward,
	}}
}

// check returns an Invalid fault for a malformed query, and trims the name.
func (q *ClosetQuery) check() error {
	var wrong fieldFaults
	wrong.addPage(q.Page, q.PerPage, maxPage)
	wrong.addPart("q", &q.Name, MaxName)
	return wrong.fault()
}

// List returns a page of the closet of the token's user. A page past the end is empty.
func (c *Closets) List(ctx context.Context, token VerifiedToken, query ClosetQuery) (ClosetPage, error) {
	if err := query.check(); err != nil {
		return ClosetPage{}, err
	}
	return c.store.Closet(ctx, token, query)
}

// Of returns a page of a user's closet, for an administrator. A page past the end is empty.
func (c *Closets) Of(ctx context.Context, user UserID, query ClosetQuery) (ClosetPage, error) {
	if err := query.check(); err != nil {
		return ClosetPage{}, err
	}
	return c.store.ClosetOf(ctx, user, query)
}

// Add adds a texture to a user's closet under a name. It charges and rewards only in the actor's own
// closet. The user must be allowed to have the texture.
func (c *Closets) Add(ctx context.Context, by Actor, user UserID, texture TextureID, itemName string) error {
	var wrong fieldFaults
	itemName, err := validateName("name", itemName)
	wrong.add(err)
	if texture < 1 {
		wrong.add(fault.Field("tid", "A TID is at least 1."))
	}
	if err := wrong.fault(); err != nil {
		return err
	}
	pricing := c.pricing
	if user != by.ID {
		pricing = Pricing{Quotas: c.pricing.Quotas}
	}
	return c.store.AddClosetItem(ctx, by, user, texture, itemName, pricing)
}

// Rename renames an item of the caller's closet.
func (c *Closets) Rename(ctx context.Context, caller Caller, texture TextureID, itemName string) error {
	itemName, err := validateName("name", itemName)
	if err != nil {
		return err
	}
	return c.store.RenameClosetItem(ctx, caller.ID, texture, itemName)
}

// Remove removes a texture from a user's closet.
func (c *Closets) Remove(ctx context.Context, by Actor, user UserID, texture TextureID) error {
	return c.store.RemoveClosetItem(ctx, by, user, texture)
}
