package core

import "github.com/veneer-skins/veneer/shared/skin"

// Site is what a site accepts, bounds, charges and rewards, for clients.
type Site struct {
	Branding Branding
	Logo     []byte // PNG; nil for none
	Players  PlayerLimits
	Textures skin.Limits
	Quotas   Quotas
	Scores   ScorePrices
	// TexturesURL is the address of the edges, without a slash at the end; empty for the API's.
	TexturesURL string
	// IsHidden says that search engines may list no page of the site.
	IsHidden bool
}
