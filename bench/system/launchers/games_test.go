package launchers

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// job is the argument of testdata/game.cjs.
type job struct {
	Version        string   `json:"version"`
	Root           string   `json:"root"`
	Username       string   `json:"username"`
	Password       string   `json:"password,omitempty"`
	Session        *session `json:"session,omitempty"`
	SkipValidation bool     `json:"skipValidation,omitempty"`
	Key            string   `json:"key,omitempty"`
}

// named is a player in a response.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// session is what a launcher keeps of a log-in.
type session struct {
	AccessToken       string  `json:"accessToken"`
	ClientToken       string  `json:"clientToken"`
	AvailableProfiles []named `json:"availableProfiles"`
	SelectedProfile   *named  `json:"selectedProfile"`
}

// outcome is what testdata/game.cjs prints.
type outcome struct {
	Number  int // of the protocol
	Session *session
	Profile *struct { // nil if the game server let no player in
		named
		Properties []struct{ Name, Value, Signature string }
	}
	Signed bool // whether the game server verified the player's key
	Error  string
}

func play(t *testing.T, j job) outcome {
	t.Helper()
	modules := testenv.Must(filepath.Abs("../../../.dev/node/launchers/node_modules"))(t)
	argument := testenv.Must(json.Marshal(j))(t)
	command := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "game.cjs"), string(argument))
	command.Env = append(os.Environ(), "NODE_PATH="+modules)
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	var o outcome
	if err == nil {
		err = json.Unmarshal(output, &o)
	}
	if err != nil {
		t.Fatalf("game.cjs %s: %v\n%s%s", argument, err, output, messages.Bytes())
	}
	return o
}

// start starts a site with further settings of core, as NAME=value. Without minecraft-protocol the test is
// skipped.
func start(t *testing.T, settings ...string) *Site {
	t.Helper()
	_, missing := os.Stat("../../../.dev/node/launchers/node_modules")
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		testenv.Skip(t, "minecraft-protocol is not in .dev/node/launchers: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
	return Start(t, blobstoretest.Directory(t).Config, settings...)
}

// texture is a texture in the payload of a profile.
type texture struct {
	URL      string
	Metadata struct{ Model string }
}

// readTextures returns the textures of a profile. Its properties must have signatures of a key.
func readTextures(t *testing.T, o outcome, key *rsa.PublicKey) map[string]texture {
	t.Helper()
	if o.Profile == nil {
		t.Fatalf("no player joined: %s", o.Error)
	}
	var payload struct {
		ProfileID, ProfileName string
		Textures               map[string]texture
	}
	for _, property := range o.Profile.Properties {
		signature := testenv.Must(base64.StdEncoding.DecodeString(property.Signature))(t)
		digest := sha1.Sum([]byte(property.Value))
		if err := rsa.VerifyPKCS1v15(key, crypto.SHA1, digest[:], signature); err != nil {
			t.Errorf("property %s: %v", property.Name, err)
		}
		if property.Name != "textures" {
			continue
		}
		value := testenv.Must(base64.StdEncoding.DecodeString(property.Value))(t)
		testenv.Do(t, json.Unmarshal(value, &payload))
	}
	if payload.ProfileID != o.Profile.ID || payload.ProfileName != o.Profile.Name {
		t.Errorf("the textures are of %s %q, and the profile of %s %q", payload.ProfileID, payload.ProfileName, o.Profile.ID, o.Profile.Name)
	}
	return payload.Textures
}

func checkTexture(t *testing.T, got texture, want *skin.Sheet) {
	t.Helper()
	sheet := testenv.Must(skin.Decode(testenv.Must(get(t.Context(), got.URL))(t)))(t)
	testenv.Check(t, bytes.Equal(sheet.Pix, want.Pix), "%s has other texels than what was uploaded", got.URL)
}

func slug(version string) string { return strings.ReplaceAll(version, ".", "_") }

// A version of each era of the protocol signs in, joins a game server in online mode, and shows it
// the textures with the site's signature.
func TestGames(t *testing.T) {
	t.Parallel()
	site := start(t)
	_, key := site.PublicKey(t)
	for i, version := range []string{"1.7.10", "1.12.2", "1.16.5", "1.19.2", "1.20.4", "newest"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			email, name := slug(version)+"@example.com", "Player_"+slug(version)
			player := Player{Name: name, Model: skin.Slim, Skin: NewSheet(uint8(i), 64, 64), Cape: NewSheet(uint8(i), 64, 32)}
			site.AddUser(t, email, player)
			o := play(t, job{Version: version, Root: site.Root, Username: email, Password: Password})
			textures := readTextures(t, o, key)
			if o.Error != "" || o.Profile.Name != name || o.Signed {
				t.Errorf("joined as %q, with a key: %t, %s", o.Profile.Name, o.Signed, o.Error)
			}
			testenv.Equal(t, textures["SKIN"].Metadata.Model, "slim", "the skin's model")
			checkTexture(t, textures["SKIN"], player.Skin)
			checkTexture(t, textures["CAPE"], player.Cape)
			getJSON(t, site.URL+"/textures/signed/"+name, o.Profile)
			cmptest.Same(t, readTextures(t, o, key), textures, "the textures at chrly's address")
			var alone map[string]texture
			getJSON(t, site.URL+"/textures/"+name, &alone)
			cmptest.Same(t, alone, textures, "the textures alone")
		})
	}
	t.Run("kept session", func(t *testing.T) {
		t.Parallel()
		testKeptSession(t, site, key)
	})
	t.Run("impostor", func(t *testing.T) {
		t.Parallel()
		testImpostor(t, site)
	})
}

// Game servers that require signed chat accept the keys of players: 1.19 and 1.19.2 send them to log
// in, each with a signature of its own kind, and later versions when they play.
func TestGamesWithPlayerKeys(t *testing.T) {
	t.Parallel()
	site := start(t, "CORE_YGGDRASIL_PROFILE_KEYS=true")
	pem, key := site.PublicKey(t)
	for _, version := range []string{"1.19", "1.19.2", "newest"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			email := slug(version) + "@example.com"
			site.AddUser(t, email, Player{Name: "Player_" + slug(version)})
			o := play(t, job{Version: version, Root: site.Root, Username: email, Password: Password, Key: pem})
			if textures := readTextures(t, o, key); o.Error != "" || !o.Signed || len(textures) != 0 {
				t.Errorf("joined with a key: %t, with textures %v, %s", o.Signed, textures, o.Error)
			}
		})
	}
}

// quick is the version of the game that starts fastest.
const quick = "1.7.10"

// A launcher that kept a session starts the game without a password. After a rename of the player
// it refreshes the token, and the game joins under the new name.
func testKeptSession(t *testing.T, site *Site, key *rsa.PublicKey) {
	t.Helper()
	const email = "ann@example.com"
	site.AddUser(t, email, Player{Name: "Ann"}, Player{Name: "Ann_builds"})
	first := play(t, job{Version: quick, Root: site.Root, Username: "ann_builds", Password: Password})
	readTextures(t, first, key)
	if first.Error != "" || first.Profile.Name != "Ann_builds" || len(first.Session.AvailableProfiles) != 2 {
		t.Fatalf("joined as %q of %v: %s", first.Profile.Name, first.Session.AvailableProfiles, first.Error)
	}

	kept := job{Version: quick, Root: site.Root, Username: "Ann_builds", Session: first.Session}
	again := play(t, kept)
	readTextures(t, again, key)
	if again.Error != "" || again.Session.AccessToken != first.Session.AccessToken {
		t.Errorf("with the kept session: %s", again.Error)
	}

	site.Rename(t, email, "Ann_builds", "Ann_paints")
	renamed := play(t, kept)
	readTextures(t, renamed, key)
	if renamed.Error != "" || renamed.Profile.Name != "Ann_paints" || renamed.Session.AccessToken == first.Session.AccessToken {
		t.Errorf("after the rename: joined as %q, %s", renamed.Profile.Name, renamed.Error)
	}
	if replaced := play(t, kept); replaced.Profile != nil || replaced.Error != "Invalid token." {
		t.Errorf("with a token that was refreshed: profile %v, %s", replaced.Profile, replaced.Error)
	}
}

// A game server lets no game in under the name of a player unless its user has signed in.
func testImpostor(t *testing.T, site *Site) {
	t.Helper()
	site.AddUser(t, "bob@example.com", Player{Name: "Bob"})
	site.AddUser(t, "cleo@example.com", Player{Name: "Cleo"})
	if o := play(t, job{Version: quick, Root: site.Root, Username: "Bob"}); o.Profile != nil || !strings.Contains(o.Error, "Failed to verify username!") {
		t.Errorf("without a log-in: profile %v, %s", o.Profile, o.Error)
	}
	var bob named
	getJSON(t, site.Root+"/api/users/profiles/minecraft/Bob", &bob)
	cleo := play(t, job{Version: quick, Root: site.Root, Username: "cleo@example.com", Password: Password})
	if cleo.Profile == nil {
		t.Fatalf("no player joined: %s", cleo.Error)
	}
	stolen := session{AccessToken: cleo.Session.AccessToken, SelectedProfile: &bob}
	if o := play(t, job{Version: quick, Root: site.Root, Username: "Bob", Session: &stolen, SkipValidation: true}); o.Profile != nil || o.Error != "Invalid token." {
		t.Errorf("with the token of another player: profile %v, %s", o.Profile, o.Error)
	}
}
