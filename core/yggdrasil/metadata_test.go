package yggdrasil_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core/public"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// The root has exactly three keys, with a slash at the end and without.
func TestMetadata(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_SKIN_DOMAINS=cdn.example.org,.cdn.example.net")
	for _, path := range []string{"", "/", "//"} {
		got := decode[map[string]any](t, c.get(t, path))
		if len(got) != 3 {
			t.Errorf("%q: the keys are %v", path, got)
		}
		text, _ := got["signaturePublickey"].(string)
		flat := strings.NewReplacer("\r", "", "\n", "").Replace(text)
		if !strings.HasPrefix(flat, "-----BEGIN PUBLIC KEY-----") || !strings.HasSuffix(flat, "-----END PUBLIC KEY-----") {
			t.Errorf("%q: the key is %q", path, text)
		}
		block, _ := pem.Decode([]byte(text))
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if private, _ := testKey(); err != nil || !private.PublicKey.Equal(key) {
			t.Errorf("%q: the key is not the site's: %v", path, err)
		}
		if want := []any{"textures.example.org", ".textures.example.org", "cdn.example.org", ".cdn.example.net"}; !cmp.Equal(got["skinDomains"], any(want)) {
			t.Errorf("%q: the domains are %v", path, got["skinDomains"])
		}
		want := map[string]any{
			"serverName": "Test", "implementationName": "Veneer", "implementationVersion": got["meta"].(map[string]any)["implementationVersion"], //nolint:errcheck // a panic says as much
			"links":                   map[string]any{"homepage": "https://skins.example.org", "register": "https://skins.example.org"},
			"feature.non_email_login": true, "feature.legacy_skin_api": true, "feature.no_mojang_namespace": true,
			"feature.enable_profile_key": false, "feature.enable_mojang_anti_features": false, "feature.username_check": false,
		}
		if diff := cmp.Diff(any(want), got["meta"]); diff != "" {
			t.Errorf("%q: the metadata (-want +got):\n%s", path, diff)
		}
	}
	if got := c.send(t, "HEAD", "", body{}); got.status != 200 || len(got.body) != 0 {
		t.Errorf("HEAD: %d %q", got.status, got.body)
	}
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
		server, err := yggdrasil.New(httpserver.Options{}, c.services.Services, yggdrasil.Config{}, yggdrasil.Site{TexturesHost: host}, public.Limiters{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ SkinDomains []string }
		if err := json.Unmarshal(server.Metadata(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.SkinDomains); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
}

// All answers of the site say where the API is, errors included.
func TestDiscovery(t *testing.T) {
	t.Parallel()

	c := start(t)
	for _, path := range []string{"/", "/api", "/api/nothing", "/nothing", "/api/yggdrasil/nothing", "/api/yggdrasil"} {
		got, err := c.exchangeAt("GET", path, body{})
		if err != nil {
			t.Fatal(err)
		}
		if location := string(got.header.Peek("X-Authlib-Injector-API-Location")); location != "/api/yggdrasil/" {
			t.Errorf("%s: %d with the location %q", got.request, got.status, location)
		}
	}
}

// Newer games get constants, and the key in base64.
func TestServices(t *testing.T) {
	t.Parallel()

	c := start(t)
	attributes := decode[map[string]any](t, c.get(t, "/minecraftservices/player/attributes"))
	privileges := decode[map[string]any](t, c.get(t, "/minecraftservices/privileges"))
	if diff := cmp.Diff(attributes["privileges"], privileges["privileges"]); diff != "" {
		t.Errorf("the privileges differ:\n%s", diff)
	}
	c.get(t, "/minecraftservices/privacy/blocklist")
	type publicKey struct{ PublicKey string }
	keys := decode[struct{ ProfilePropertyKeys, PlayerCertificateKeys []publicKey }](t, c.get(t, "/minecraftservices/publickeys"))
	if !slices.Equal(keys.ProfilePropertyKeys, keys.PlayerCertificateKeys) || len(keys.ProfilePropertyKeys) != 1 {
		t.Errorf("the keys are %v", keys)
	}
	der, err := base64.StdEncoding.DecodeString(keys.ProfilePropertyKeys[0].PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if private, _ := testKey(); err != nil || !private.PublicKey.Equal(key) {
		t.Errorf("the key is not the site's: %v", err)
	}
}

// Games before 1.7.6 are sent to the edges.
func TestLegacyTextures(t *testing.T) {
	t.Parallel()

	c := start(t)
	f := func(path, want string) {
		t.Helper()
		got := c.get(t, path)
		if location := string(got.header.Peek("Location")); got.status != 302 || location != want {
			t.Errorf("%s: %d to %q; want %q", path, got.status, location, want)
		}
	}
	f("/skins/MinecraftSkins/Ann_1.png", texturesURL+"/legacy/Ann_1.png")
	f("/skins/MinecraftCloaks/Ann_1.png", texturesURL+"/cape/Ann_1.png")
	f("/skins/MinecraftSkins/%0d%0aX:%20y%3f.png", texturesURL+"/legacy/%0D%0AX:%20y%3F.png")
	c.get(t, "/skins/MinecraftSkins/Ann_1.gif").isError(t, 404, "Not Found", "")
}
