package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
)

// PlayerAdminStore finds and changes players for administrators. The methods that
// change one first make sure of the authority, which must be over what the owner
// owns, else they return a Forbidden fault; NotFound without such a player. With
// the change they write one entry of the audit log, and with a failure none.
type PlayerAdminStore interface {
	// FindPlayers lists players, the latest first.
	FindPlayers(ctx context.Context, query PlayerQuery) (Page[Player], error)

	// RenamePlayerBy renames a player as RenamePlayer does.
	RenamePlayerBy(ctx context.Context, by Actor, player PlayerID, name NewPlayer) (Player, error)

	// MovePlayerBy gives a player to another user, who must exist (NotFound), whose
	// things the authority must be over (Forbidden), and who must have room within the
	// quotas (Refused). The player takes off what the new owner may not wear.
	MovePlayerBy(ctx context.Context, by Actor, player PlayerID, owner UserID, quotas Quotas) (Player, error)

	// SetPlayerTexturesBy applies textures as SetPlayerTextures does: what the owner may wear.
	SetPlayerTexturesBy(ctx context.Context, by Actor, player PlayerID, slots TextureSlots) (Player, error)

	// ClearPlayerTexturesBy empties slots.
	ClearPlayerTexturesBy(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error)

	// DeletePlayerBy removes a player.
	DeletePlayerBy(ctx context.Context, by Actor, player PlayerID) error
}

// PlayerQuery says which players an administrator looks for. What is zero or empty
// asks for any.
type PlayerQuery struct {
	ID            PlayerID
	Owner         UserID
	Name          string // part of the name, in any case
	Page, PerPage int
}

// Find returns a page of the players that a query finds. A page past the end is
// empty.
func (p *Players) Find(ctx context.Context, query PlayerQuery) (Page[Player], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxSearchPage)
	wrong.addPart("name", &query.Name, maxName)
	if err := wrong.fault(); err != nil {
		return Page[Player]{}, err
	}
	return p.store.FindPlayers(ctx, query)
}

// RenameBy has an administrator give a player another name.
func (p *Players) RenameBy(ctx context.Context, by Actor, player PlayerID, name string) (Player, error) {
	newName, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.RenamePlayerBy(ctx, by, player, newName)
}

// MoveBy has an administrator give a player to another user.
func (p *Players) MoveBy(ctx context.Context, by Actor, player PlayerID, owner UserID) (Player, error) {
	if owner < 1 {
		return Player{}, fault.Field("uid", "A uid is at least 1.")
	}
	return p.store.MovePlayerBy(ctx, by, player, owner, p.pricing.Quotas)
}

// SetTexturesBy has an administrator apply textures to a player: all that are given, or
// none.
func (p *Players) SetTexturesBy(ctx context.Context, by Actor, player PlayerID, slots TextureSlots) (Player, error) {
	if err := slots.check(); err != nil {
		return Player{}, err
	}
	return p.store.SetPlayerTexturesBy(ctx, by, player, slots)
}

// ClearTexturesBy has an administrator empty slots of a player.
func (p *Players) ClearTexturesBy(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error) {
	if !skin && !cape {
		return Player{}, errNoSlot
	}
	return p.store.ClearPlayerTexturesBy(ctx, by, player, skin, cape)
}

// DeleteBy has an administrator remove a player.
func (p *Players) DeleteBy(ctx context.Context, by Actor, player PlayerID) error {
	return p.store.DeletePlayerBy(ctx, by, player)
}
