package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
)

// ClosetItem is a texture that a user keeps, under a name of their own.
type ClosetItem struct {
	Texture
	ItemName string
}

// ClosetQuery says which items of a closet are wanted.
type ClosetQuery struct {
	Capes   bool   // capes, else skins
	Name    string // part of the item's name, in any case; empty for all
	Page    int    // from 1
	PerPage int
}

// ClosetPage is some items of a closet, of Total that the query finds.
type ClosetPage struct {
	Items []ClosetItem
	Total int
}

// ClosetStore keeps closets. A texture's likes are the number of closets that
// hold it.
type ClosetStore interface {
	// Closet lists items of the closet of a ticket's user, the newest first.
	Closet(ctx context.Context, token VerifiedToken, query ClosetQuery) (ClosetPage, error)

	// AddClosetItem adds a texture. It must exist (NotFound) and be public, the
	// user's own, or the user an administrator (Forbidden). It returns a Duplicate
	// fault when it is there already, a Refused one when the closet is full, and a
	// ScoreTooLow one when the user cannot pay.
	AddClosetItem(ctx context.Context, user UserID, texture TextureID, name string, pricing Pricing) error

	// RenameClosetItem gives an item another name; without such an item it returns a
	// NotFound fault.
	RenameClosetItem(ctx context.Context, user UserID, texture TextureID, name string) error

	// RemoveClosetItem removes an item; without such an item it returns a NotFound
	// fault. The user's players take the texture off if the user may now use it no
	// more, since it is private and somebody else's.
	RemoveClosetItem(ctx context.Context, user UserID, texture TextureID) error
}

// closetStore is all that is needed of a store of closets.
type closetStore interface {
	ClosetStore
	ClosetAdminStore
}

// Closets are the textures that users keep.
type Closets struct {
	store   closetStore
	pricing Pricing
}

// NewClosets returns the closets kept in a store.
func NewClosets(store closetStore, quotas Quotas, scores Scores) *Closets {
	return &Closets{store: store, pricing: Pricing{
		Quotas: quotas, Cost: scores.ClosetItem, Refund: scores.RefundClosetItem, Reward: scores.LikeReward,
	}}
}

// check returns an Invalid fault for what no closet can be asked, and trims the
// name.
func (q *ClosetQuery) check() error {
	var wrong fieldFaults
	wrong.addPage(q.Page, q.PerPage, maxPage)
	wrong.addPart("q", &q.Name, maxName)
	return wrong.fault()
}

// List returns a page of the closet of a ticket's user. A page past the end is
// empty.
func (c *Closets) List(ctx context.Context, token VerifiedToken, query ClosetQuery) (ClosetPage, error) {
	if err := query.check(); err != nil {
		return ClosetPage{}, err
	}
	return c.store.Closet(ctx, token, query)
}

// Add puts a texture into the caller's closet under a name.
func (c *Closets) Add(ctx context.Context, caller Caller, texture TextureID, itemName string) error {
	itemName, err := checkItem(texture, itemName)
	if err != nil {
		return err
	}
	return c.store.AddClosetItem(ctx, caller.ID, texture, itemName, c.pricing)
}

// checkItem checks an item to be, and returns its name trimmed.
func checkItem(texture TextureID, itemName string) (string, error) {
	var wrong fieldFaults
	itemName, err := validateName("name", itemName)
	wrong.add(err)
	if texture < 1 {
		wrong.add(fault.Field("tid", "A TID is at least 1."))
	}
	return itemName, wrong.fault()
}

// Rename gives an item of the caller's closet another name.
func (c *Closets) Rename(ctx context.Context, caller Caller, texture TextureID, itemName string) error {
	itemName, err := validateName("name", itemName)
	if err != nil {
		return err
	}
	return c.store.RenameClosetItem(ctx, caller.ID, texture, itemName)
}

// Remove takes a texture out of the caller's closet.
func (c *Closets) Remove(ctx context.Context, caller Caller, texture TextureID) error {
	return c.store.RemoveClosetItem(ctx, caller.ID, texture)
}
