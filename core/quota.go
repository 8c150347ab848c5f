package core

// Quotas bounds what a user may have. A quota of 0 is none.
// Its settings are CORE_QUOTA_PLAYERS, CORE_QUOTA_CLOSET_ITEMS, CORE_QUOTA_TEXTURES,
// CORE_QUOTA_TEXTURE_BYTES.
type Quotas struct {
	Players      int   `env:"PLAYERS" envDefault:"100" min:"0" help:"most players of a user; 0 for any number"`
	ClosetItems  int   `env:"CLOSET_ITEMS" envDefault:"5000" min:"0" help:"most items in a user's closet; 0 for any number"`
	Textures     int   `env:"TEXTURES" envDefault:"1000" min:"0" help:"most textures that a user has uploaded; 0 for any number"`
	TextureBytes int64 `env:"TEXTURE_BYTES" envDefault:"67108864" min:"0" help:"most bytes of the textures that a user has uploaded, as stored; 0 for any number"`
}
