package core

// Quotas bounds what a user may have. A quota of 0 is none.
type Quotas struct {
	Players      int   `env:"PLAYERS" envDefault:"100" help:"most players of a user; 0 for any number"`
	ClosetItems  int   `env:"CLOSET_ITEMS" envDefault:"5000" help:"most items in a user's closet; 0 for any number"`
	Textures     int   `env:"TEXTURES" envDefault:"1000" help:"most textures that a user has uploaded; 0 for any number"`
	TextureBytes int64 `env:"TEXTURE_BYTES" envDefault:"67108864" help:"most bytes of the textures that a user has uploaded, as stored; 0 for any number"`
}

// Check returns an error that names an invalid quota.
func (q Quotas) Check() error {
	return notNegative(map[string]int{
		"PLAYERS": q.Players, "CLOSET_ITEMS": q.ClosetItems, "TEXTURES": q.Textures, "TEXTURE_BYTES": int(q.TextureBytes),
	})
}
