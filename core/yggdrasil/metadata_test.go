package yggdrasil_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The root has exactly three keys, with a slash at the end and without.
func TestMetadata(t *testing.T) {
	t.Parallel()
	c := start(t, "YGGDRASIL_SKIN_DOMAINS=cdn.example.org,.cdn.example.net")
	for _, path := range []string{"", "/", "//"} {
		got := decode[map[string]any](t, c.Get(t, path))
		testenv.Equal(t, len(got), 3, "%q: the number of keys of %v", path, got)
		text, _ := got["signaturePublickey"].(string)
		flat := strings.NewReplacer("\r", "", "\n", "").Replace(text)
		testenv.Check(t, strings.HasPrefix(flat, "-----BEGIN PUBLIC KEY-----") &&
			strings.HasSuffix(flat, "-----END PUBLIC KEY-----"), "%q: the key is %q", path, text)
		block, _ := pem.Decode([]byte(text))
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		private, _ := testKey()
		testenv.Check(t, err == nil && private.PublicKey.Equal(key), "%q: the key is not the site's: %v", path, err)
		domains := []any{"textures.example.org", ".textures.example.org", "cdn.example.org", ".cdn.example.net"}
		cmptest.Same(t, got["skinDomains"], any(domains), "%q: the domains", path)
		want := map[string]any{
			"serverName": "Test", "implementationName": "Veneer", "implementationVersion": got["meta"].(map[string]any)["implementationVersion"], //nolint:errcheck // a panic says as much
			"links":                   map[string]any{"homepage": "https://skins.example.org", "register": "https://skins.example.org"},
			"feature.non_email_login": true, "feature.legacy_skin_api": true, "feature.no_mojang_namespace": true,
			"feature.enable_profile_key": false, "feature.enable_mojang_anti_features": false, "feature.username_check": false,
		}
		cmptest.Same(t, got["meta"], any(want), "%q: the metadata", path)
	}
	got := c.Send(t, "HEAD", "", body{})
	got.HasStatus(t, 200)
	testenv.Equal(t, string(got.Body), "", "the body of HEAD")
}

// Hosts of textures are listed as clients write them: a name also with all below it, an address of
// IPv6 also in brackets.
func TestSkinDomains(t *testing.T) {
	t.Parallel()
	c := start(t)
	for host, want := range map[string][]string{
		"skins.example.org": {"skins.example.org", ".skins.example.org"},
		"192.0.2.1":         {"192.0.2.1"},
		"2001:db8::1":       {"2001:db8::1", "[2001:db8::1]"},
	} {
		site := yggdrasil.Site{TexturesHost: host}
		var options httpserver.Options
		server := testenv.Must(yggdrasil.New(options, c.services, yggdrasil.Config{}, site, clientapi.Limiters{}, 0))(t)
		var got struct{ SkinDomains []string }
		testenv.Do(t, json.Unmarshal(server.Metadata(), &got))
		cmptest.Same(t, got.SkinDomains, want, "%s", host)
	}
}

// All answers of the site say where the API is, errors included.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, path := range []string{"/", "/api", "/api/nothing", "/nothing", "/api/yggdrasil/nothing", "/api/yggdrasil"} {
		got := testenv.Must(c.atRoot().Exchange("GET", path, body{}))(t)
		location := got.Header.Get("X-Authlib-Injector-API-Location")
		testenv.Equal(t, location, "/api/yggdrasil/", "%s: the location", got.Request())
	}
}

// Newer games get constants, and the key in base64.
func TestServices(t *testing.T) {
	t.Parallel()
	c := start(t)
	attributes := decode[map[string]any](t, c.Get(t, "/minecraftservices/player/attributes"))
	privileges := decode[map[string]any](t, c.Get(t, "/minecraftservices/privileges"))
	cmptest.Same(t, privileges["privileges"], attributes["privileges"], "the privileges differ")
	c.Get(t, "/minecraftservices/privacy/blocklist")
	type publicKey struct{ PublicKey string }
	keys := decode[struct{ ProfilePropertyKeys, PlayerCertificateKeys []publicKey }](t, c.Get(t, "/minecraftservices/publickeys"))
	cmptest.Same(t, keys.ProfilePropertyKeys, keys.PlayerCertificateKeys, "the keys differ")
	testenv.Equal(t, len(keys.ProfilePropertyKeys), 1, "the number of keys")
	der := testenv.Must(base64.StdEncoding.DecodeString(keys.ProfilePropertyKeys[0].PublicKey))(t)
	key, err := x509.ParsePKIXPublicKey(der)
	private, _ := testKey()
	testenv.Check(t, err == nil && private.PublicKey.Equal(key), "the key is not the site's: %v", err)
}

// Games before 1.7.6 are sent to the edges.
func TestLegacyTextures(t *testing.T) {
	t.Parallel()
	c := start(t)
	f := func(path, want string) {
		t.Helper()
		got := c.Get(t, path)
		got.HasStatus(t, 302)
		testenv.Equal(t, got.Header.Get("Location"), want, "%s: the location", path)
	}
	f("/skins/MinecraftSkins/Ann_1.png", texturesURL+"/legacy/Ann_1.png")
	f("/skins/MinecraftCloaks/Ann_1.png", texturesURL+"/cape/Ann_1.png")
	f("/skins/MinecraftSkins/%0d%0aX:%20y%3f.png", texturesURL+"/legacy/%0D%0AX:%20y%3F.png")
	isError(t, c.Get(t, "/skins/MinecraftSkins/Ann_1.gif"), 404, "Not Found", "")
}
