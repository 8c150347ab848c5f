// Package launchers tests the API of launchers and game servers with other projects' programs, on a
// site of real ones.
//
// Its tests run minecraft-protocol, as a game and as a game server, in a version of each era of the
// game's protocol. It is a Node program, looked up in .dev/node/launchers of the repository;
// package.json beside this file pins it.
//
// make launchers runs RunSuite and CheckAgent, which take programs that must not be copied
// here, by their licences.
package launchers

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Password is the password of each user.
const Password = "only for tests"

// Site is a site that launchers and game servers use. Its addresses are those of its edge.
type Site struct {
	Core *stack.Process
	URL  string // base URL
	Root string // URL of the API of launchers, without a final slash
}

// Start starts a site with textures in a store, and with further settings of core as NAME=value.
func Start(tb testing.TB, files blobstore.Config, settings ...string) *Site {
	tb.Helper()
	core := site.NewCore(tb, files)
	address := stack.FreeAddress(tb)
	s := &Site{Core: core, URL: "http://" + address}
	s.Root = s.URL + "/api/yggdrasil"
	site.ServeLaunchers(tb, core, s.URL)
	core.Set("CORE_TRUSTED_PROXIES=127.0.0.1/32") // the edge
	core.Set(settings...)
	site.StartWith(tb, core, "EDGE_LISTEN="+address, "EDGE_YGGDRASIL_URL=/api/yggdrasil/")
	return s
}

// Player is a player of a user.
type Player struct {
	Name       string
	Model      skin.Type   // of Skin
	Skin, Cape *skin.Sheet // nil for none
}

// AddUser adds a user with players, as an operator and the user would.
func (s *Site) AddUser(tb testing.TB, email string, players ...Player) {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), stack.Binary(tb, "core"), "user", "add", email)
	command.Env = s.Core.Environ()
	command.Stdin = strings.NewReader(Password + "\n")
	stack.MustRun(tb, command)
	session := s.logIn(tb, email)
	for _, player := range players {
		id := session.AddPlayer(tb, player.Name)
		slots := map[string]any{}
		if player.Skin != nil {
			slots["skin"] = session.Upload(tb, player.Name, player.Model, *player.Skin).TID
		}
		if player.Cape != nil {
			slots["cape"] = session.Upload(tb, player.Name, skin.Cape, *player.Cape).TID
		}
		if len(slots) > 0 {
			session.Call(tb, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", id), slots)
		}
	}
}

// Rename renames a player of a user.
func (s *Site) Rename(tb testing.TB, email, from, to string) {
	tb.Helper()
	session := s.logIn(tb, email)
	var players []struct {
		PID  int    `json:"pid"`
		Name string `json:"name"`
	}
	session.Get(tb, "/api/players", &players)
	for _, player := range players {
		if player.Name == from {
			session.Call(tb, http.MethodPut, fmt.Sprintf("/api/players/%d/name", player.PID), map[string]any{"name": to})
			return
		}
	}
	tb.Fatalf("%s has no player %s", email, from)
}

func (s *Site) logIn(tb testing.TB, email string) *site.Client {
	tb.Helper()
	c := &site.Client{Base: s.URL}
	c.LogIn(tb, email, Password)
	return c
}

// get returns a body of status 200.
func get(ctx context.Context, url string) (body []byte, err error) {
	status, body, err := new(site.Client).Try(ctx, http.MethodGet, url, "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: %d %s", url, status, body)
	}
	return body, err
}

// getJSON decodes a body of status 200.
func getJSON(tb testing.TB, url string, into any) {
	tb.Helper()
	testenv.Do(tb, json.Unmarshal(testenv.Must(get(tb.Context(), url))(tb), into))
}

// PublicKey returns the key that the site says it signs with, as PEM and decoded.
func (s *Site) PublicKey(tb testing.TB) (encoded string, key *rsa.PublicKey) {
	tb.Helper()
	var metadata struct{ SignaturePublickey string }
	getJSON(tb, s.Root, &metadata)
	block, _ := pem.Decode([]byte(metadata.SignaturePublickey))
	if block == nil {
		tb.Fatalf("the metadata have no key: %q", metadata.SignaturePublickey)
	}
	parsed := testenv.Must(x509.ParsePKIXPublicKey(block.Bytes))(tb)
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		tb.Fatalf("the key is a %T", parsed)
	}
	return metadata.SignaturePublickey, key
}

// NewSheet returns an opaque sheet that differs for each seed.
func NewSheet(seed uint8, width, height int) *skin.Sheet {
	sheet := &skin.Sheet{Width: width, Height: height, Pix: make([]uint8, 0, 4*width*height)}
	for i := range width * height {
		sheet.Pix = append(sheet.Pix, seed, uint8(i), uint8(i>>8), 255)
	}
	return sheet
}
