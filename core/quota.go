package core

import (
	"github.com/veneer-skins/veneer/shared/fault"
)

// Quotas bounds what a user may have. A quota of 0 is none.
type Quotas struct {
	Players      int   `env:"PLAYERS" envDefault:"100" help:"most players of a user; 0 for any number"`
	ClosetItems  int   `env:"CLOSET_ITEMS" envDefault:"5000" help:"most items in a user's closet; 0 for any number"`
	Textures     int   `env:"TEXTURES" envDefault:"1000" help:"most textures that a user has uploaded; 0 for any number"`
	TextureBytes int64 `env:"TEXTURE_BYTES" envDefault:"67108864" help:"most bytes of the textures that a user has uploaded, as stored; 0 for any number"`
}

// Check returns an error that names a quota which makes no sense.
func (q Quotas) Check() error {
	return notNegative(map[string]int{
		"PLAYERS": q.Players, "CLOSET_ITEMS": q.ClosetItems, "TEXTURES": q.Textures, "TEXTURE_BYTES": int(q.TextureBytes),
	})
}

// Scores is what the site rewards and charges.
type Scores struct {
	Registration int64 `env:"REGISTRATION" envDefault:"0" help:"score that a new user has"`
	Player       int64 `env:"PLAYER" envDefault:"0" help:"score that adding a player costs; the one that is named at a registration is free"`
	ClosetItem   int64 `env:"CLOSET_ITEM" envDefault:"0" help:"score that adding a closet item costs; an upload adds its own for nothing"`
	TextureKiB   int64 `env:"TEXTURE_KIB" envDefault:"0" help:"score that uploading a texture costs for each KiB of its file, rounded up"`
}

// Check returns an error that names a score which makes no sense.
func (s Scores) Check() error {
	return notNegative(map[string]int{
		"REGISTRATION": int(s.Registration), "PLAYER": int(s.Player), "CLOSET_ITEM": int(s.ClosetItem), "TEXTURE_KIB": int(s.TextureKiB),
	})
}

// Terms are what a user must satisfy to get one thing more: room within the
// quotas, and a score that covers the cost, which is charged.
type Terms struct {
	Quotas Quotas
	Cost   int64
}

// ErrScore returns the fault of a user whose score does not cover a cost.
func ErrScore(cost int64) error {
	return fault.New(fault.ScoreTooLow, "This costs a score of %d, and you have less.", cost)
}
