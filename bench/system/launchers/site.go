package launchers

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
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
	core := stack.NewCore(tb, files)
	key := filepath.Join(tb.TempDir(), "yggdrasil.pem")
	if err := os.WriteFile(key, []byte(core.Run(tb, "keys", "yggdrasil")), 0o600); err != nil {
		tb.Fatal(err)
	}
	address := stack.FreeAddress(tb)
	s := &Site{Core: core, URL: "http://" + address}
	s.Root = s.URL + "/api/yggdrasil"
	core.Set("CORE_PUBLIC_URL", s.URL)
	core.Set("CORE_TRUSTED_PROXIES", "127.0.0.1/32") // the edge
	core.Set("CORE_YGGDRASIL_KEY_FILE", key)
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		core.Set(name, value)
	}
	core.Start(tb)
	edge := stack.NewEdge(tb, files, core)
	edge.Set("EDGE_LISTEN", address)
	edge.Set("EDGE_YGGDRASIL_URL", "/api/yggdrasil/")
	edge.Start(tb)
	edge.AwaitReady(tb)
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
	if output, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("add %s: %v\n%s", email, err, output)
	}
	session := s.logIn(tb, email)
	for _, player := range players {
		id := session.send(tb, http.MethodPost, "/api/players", map[string]any{"name": player.Name}).Data.PID
		slots := map[string]any{}
		if player.Skin != nil {
			slots["skin"] = session.upload(tb, player.Name, player.Model, *player.Skin)
		}
		if player.Cape != nil {
			slots["cape"] = session.upload(tb, player.Name, skin.Cape, *player.Cape)
		}
		if len(slots) > 0 {
			session.send(tb, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", id), slots)
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
	getJSON(tb, s.URL+"/api/players", session.token, &players)
	for _, player := range players {
		if player.Name == from {
			session.send(tb, http.MethodPut, fmt.Sprintf("/api/players/%d/name", player.PID), map[string]any{"name": to})
			return
		}
	}
	tb.Fatalf("%s has no player %s", email, from)
}

// logIn returns a session of a user.
func (s *Site) logIn(tb testing.TB, email string) apiSession {
	tb.Helper()
	session := apiSession{url: s.URL}
	session.token = session.send(tb, http.MethodPost, "/api/auth/login", map[string]any{"email": email, "password": Password}).Token
	return session
}

// apiSession calls the site's own API as a user.
type apiSession struct{ url, token string }

// apiResponse has the members of the API's responses that are used here.
type apiResponse struct {
	Code  int    `json:"code"`
	Token string `json:"token"`
	Data  struct {
		PID int `json:"pid"`
		TID int `json:"tid"`
	} `json:"data"`
}

// send sends a JSON body.
func (a apiSession) send(tb testing.TB, method, path string, body map[string]any) apiResponse {
	tb.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	return a.do(tb, method, path, "application/json", encoded)
}

// upload uploads a texture and returns its id.
func (a apiSession) upload(tb testing.TB, name string, as skin.Type, sheet skin.Sheet) int {
	tb.Helper()
	return a.do(tb, http.MethodPost, "/api/textures", stack.UploadType, stack.SheetForm(name, as, sheet)).Data.TID
}

func (a apiSession) do(tb testing.TB, method, path, contentType string, body []byte) apiResponse {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), method, a.url+path, bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	var decoded apiResponse
	if err := json.Unmarshal(content, &decoded); err != nil || response.StatusCode != http.StatusOK || decoded.Code != 0 {
		tb.Fatalf("%s %s: %s %s", method, path, response.Status, content)
	}
	return decoded
}

// get returns a body of status 200. token may be empty.
func get(ctx context.Context, url, token string) (body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s %s", url, response.Status, body)
	}
	return body, err
}

// getJSON decodes a body of status 200.
func getJSON(tb testing.TB, url, token string, into any) {
	tb.Helper()
	body, err := get(tb.Context(), url, token)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// PublicKey returns the key that the site says it signs with, as PEM and decoded.
func (s *Site) PublicKey(tb testing.TB) (encoded string, key *rsa.PublicKey) {
	tb.Helper()
	var metadata struct {
		PublicKey string `json:"signaturePublickey"`
	}
	getJSON(tb, s.Root, "", &metadata)
	block, _ := pem.Decode([]byte(metadata.PublicKey))
	if block == nil {
		tb.Fatalf("the metadata have no key: %q", metadata.PublicKey)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		tb.Fatal(err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		tb.Fatalf("the key is a %T", parsed)
	}
	return metadata.PublicKey, key
}

// NewSheet returns an opaque sheet that differs for each seed.
func NewSheet(seed uint8, width, height int) *skin.Sheet {
	sheet := &skin.Sheet{Width: width, Height: height, Pix: make([]uint8, 0, 4*width*height)}
	for i := range width * height {
		sheet.Pix = append(sheet.Pix, seed, uint8(i), uint8(i>>8), 255)
	}
	return sheet
}
