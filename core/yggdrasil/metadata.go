package yggdrasil

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/version"
)

// metadataJSON tells launchers and authlib-injector of the site.
type metadataJSON struct {
	Meta        map[string]any `json:"meta"`
	SkinDomains []string       `json:"skinDomains"`
	PublicKey   string         `json:"signaturePublickey"`
}

// newMetadata returns the body of the response to GET Root.
func newMetadata(config Config, site Site, key *core.ProfileKey) ([]byte, error) {
	domains := []string{site.TexturesHost}
	switch address, err := netip.ParseAddr(site.TexturesHost); {
	case err != nil:
		domains = append(domains, "."+site.TexturesHost) // a suffix does not match the host itself
	case address.Is6():
		domains = append(domains, "["+site.TexturesHost+"]") // Java's URL.getHost has the brackets
	}
	domains = append(domains, config.SkinDomains...)
	return encode(metadataJSON{
		Meta: map[string]any{
			"serverName":            site.Name,
			"implementationName":    "Veneer",
			"implementationVersion": version.Current().Version,
			"links":                 map[string]string{"homepage": site.Homepage, "register": site.Homepage},

			"feature.non_email_login":             true,
			"feature.legacy_skin_api":             true,
			"feature.no_mojang_namespace":         true,
			"feature.enable_profile_key":          config.ProfileKeys,
			"feature.enable_mojang_anti_features": false,
			"feature.username_check":              false,
		},
		SkinDomains: domains,
		PublicKey:   key.PublicPEM(),
	})
}

// encode returns the JSON of a response that never changes.
func encode(body any) ([]byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return encoded, nil
}

// writeEncoded writes status 200 with a JSON body that never changes.
func writeEncoded(rc *fasthttp.RequestCtx, body []byte) error {
	rc.SetContentType("application/json; charset=utf-8")
	rc.Response.SetBodyRaw(body)
	return nil
}

// handleMetadata handles GET Root.
func (s *Server) handleMetadata(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeEncoded(rc, s.metadata)
}
