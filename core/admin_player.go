package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
)

// PlayerAdminStore finds and changes players for administrators. Methods that change a player first
// check Actor.CanModerateContentOf its owner (Forbidden). They write one entry of the audit log
// with the change, and none with a failure. An unknown player is a NotFound fault.
type PlayerAdminStore interface {
	// FindPlayers lists players, the latest first.
	FindPlayers(ctx context.Context, query PlayerQuery) (Page[FoundPlayer], error)

	// RenamePlayerBy renames a player as RenamePlayer does.
	RenamePlayerBy(ctx context.Context, by Actor, player PlayerID, name NewPlayer) (Player, error)

	// MovePlayerBy gives a player to another user. That user must exist (NotFound), must pass
	// Actor.CanModerateContentOf (Forbidden), and must have fewer players than the quota (Refused).
	// Textures that the new owner may not use are taken off.
	MovePlayerBy(ctx context.Context, by Actor, player PlayerID, owner UserID, quotas Quotas) (Player, error)

	// SetPlayerTexturesBy applies textures as SetPlayerTextures does: the rights of the owner
	// count.
	SetPlayerTexturesBy(ctx context.Context, by Actor, player PlayerID, selection TextureSelection) (Player, error)

	// ClearPlayerTexturesBy takes textures off.
	ClearPlayerTexturesBy(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error)

	// DeletePlayerBy deletes a player.
	DeletePlayerBy(ctx context.Context, by Actor, player PlayerID) error
}

// FoundPlayer is a player with the nickname of its owner.
type FoundPlayer struct {
	Player
	OwnerNickname string
}

// PlayerQuery selects players for an administrator. Zero values select all.
type PlayerQuery struct {
	ID            PlayerID
	Owner         UserID
	Name          string // part of the name, case-insensitive
	Page, PerPage int
}

// Find returns a page of the players that match a query. A page past the end is empty.
func (p *Players) Find(ctx context.Context, query PlayerQuery) (Page[FoundPlayer], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxSearchPage)
	wrong.addPart("name", &query.Name, MaxName)
	if err := wrong.fault(); err != nil {
		return Page[FoundPlayer]{}, err
	}
	return p.store.FindPlayers(ctx, query)
}

// RenameBy renames a player, for an administrator.
func (p *Players) RenameBy(ctx context.Context, by Actor, player PlayerID, name string) (Player, error) {
	newName, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.RenamePlayerBy(ctx, by, player, newName)
}

// MoveBy gives a player to another user, for an administrator.
func (p *Players) MoveBy(ctx context.Context, by Actor, player PlayerID, owner UserID) (Player, error) {
	if owner < 1 {
		return Player{}, fault.Field("uid", "A uid is at least 1.")
	}
	return p.store.MovePlayerBy(ctx, by, player, owner, p.pricing.Quotas)
}

// SetTexturesBy applies textures to a player, all or none, for an administrator.
func (p *Players) SetTexturesBy(ctx context.Context, by Actor, player PlayerID, selection TextureSelection) (Player, error) {
	if err := selection.check(); err != nil {
		return Player{}, err
	}
	return p.store.SetPlayerTexturesBy(ctx, by, player, selection)
}

// ClearTexturesBy takes textures off a player, for an administrator.
func (p *Players) ClearTexturesBy(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error) {
	if !skin && !cape {
		return Player{}, errNoSlot
	}
	return p.store.ClearPlayerTexturesBy(ctx, by, player, skin, cape)
}

// DeleteBy deletes a player, for an administrator.
func (p *Players) DeleteBy(ctx context.Context, by Actor, player PlayerID) error {
	return p.store.DeletePlayerBy(ctx, by, player)
}
