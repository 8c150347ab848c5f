package yggdrasil

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// What every player may do. The site restricts nothing of it.
const (
	privileges = `"privileges":{"onlineChat":{"enabled":true},"multiplayerServer":{"enabled":true},"multiplayerRealms":{"enabled":false},"telemetry":{"enabled":false},"optionalTelemetry":{"enabled":false}}`
	attributes = `{` + privileges + `,"profanityFilterPreferences":{"profanityFilterOn":false},"banStatus":{"bannedScopes":{}}}`
	blockList  = `{"blockedProfiles":[]}`
)

// handleAttributes handles GET /minecraftservices/player/attributes.
func (s *Server) handleAttributes(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeEncoded(rc, []byte(attributes))
}

// handlePrivileges handles GET /minecraftservices/privileges.
func (s *Server) handlePrivileges(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeEncoded(rc, []byte(`{`+privileges+`}`))
}

// handleBlockList handles GET /minecraftservices/privacy/blocklist.
func (s *Server) handleBlockList(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeEncoded(rc, []byte(blockList))
}

// newPublicKeys returns the body of the response to GET /minecraftservices/publickeys.
func newPublicKeys(key *core.ProfileKey) ([]byte, error) {
	type publicKeyJSON struct {
		PublicKey string `json:"publicKey"`
	}
	keys := []publicKeyJSON{{key.PublicBase64()}}
	return encode(struct {
		Profiles []publicKeyJSON `json:"profilePropertyKeys"`
		Players  []publicKeyJSON `json:"playerCertificateKeys"`
	}{keys, keys})
}

// handlePublicKeys handles GET /minecraftservices/publickeys.
func (s *Server) handlePublicKeys(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeEncoded(rc, s.keys)
}

// timeFormat is the format of times in certificates.
const timeFormat = "2006-01-02T15:04:05.000Z"

// handleCertificates handles POST /minecraftservices/player/certificates.
func (s *Server) handleCertificates(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	if user.Player == nil {
		return fault.New(fault.Forbidden, "The token has no profile. Choose one, and refresh the token.")
	}
	certificate, err := s.Certificates.Issue(ctx, user)
	if err != nil {
		return err
	}
	type keyPairJSON struct {
		PrivateKey string `json:"privateKey"`
		PublicKey  string `json:"publicKey"`
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, struct {
		KeyPair        keyPairJSON `json:"keyPair"`
		SignatureV1    string      `json:"publicKeySignature"`
		SignatureV2    string      `json:"publicKeySignatureV2"`
		ExpiresAt      string      `json:"expiresAt"`
		RefreshedAfter string      `json:"refreshedAfter"`
	}{
		keyPairJSON{certificate.PrivateKey, certificate.PublicKey},
		certificate.SignatureV1, certificate.SignatureV2,
		certificate.ExpiresAt.UTC().Format(timeFormat), certificate.RefreshAfter.UTC().Format(timeFormat),
	})
}
