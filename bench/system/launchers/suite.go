package launchers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// SuiteResult is the result of yggdrasil-mock's tests.
type SuiteResult struct {
	// Passed and Failed are those that do not ask for the mock's own hash of pixels in the
	// addresses of textures.
	Passed, Failed []string
	// PassedByAlias and FailedByAlias are the others, run through a proxy that gives textures such
	// addresses.
	PassedByAlias, FailedByAlias []string
}

// The users that the suite is told of. It requires that the first has no player, the second one with
// a classic skin and a cape, and the third one with a slim skin and one with a cape.
const (
	noPlayer, onePlayer, twoPlayers  = "test1@example.com", "test2@example.com", "test3@example.com"
	classicPlayer, slimPlayer, caped = "character1", "character2", "character3"
)

// RunSuite runs yggdrasil-mock's tests, in the directory test of a checkout in which npm ci has run,
// against a new site. The directory is not written to.
func RunSuite(tb testing.TB, site *Site, directory string) SuiteResult {
	tb.Helper()
	site.AddUser(tb, noPlayer)
	site.AddUser(tb, onePlayer, Player{Name: classicPlayer, Model: skin.Classic, Skin: NewSheet(1, 64, 64), Cape: NewSheet(2, 64, 32)})
	site.AddUser(tb, twoPlayers, Player{Name: slimPlayer, Model: skin.Slim, Skin: NewSheet(3, 64, 64)}, Player{Name: caped, Cape: NewSheet(4, 64, 32)})

	work := suiteCopy(tb, directory)
	var result SuiteResult
	result.Passed, result.Failed = runMocha(tb, work, site.Root, "--grep", "textures", "--invert")
	proxy := startAliasProxy(tb, site.URL)
	result.PassedByAlias, result.FailedByAlias = runMocha(tb, work, proxy.url+strings.TrimPrefix(site.Root, site.URL), "--grep", "textures")
	return result
}

// suiteCopy returns a temporary copy of the suite that knows the users.
func suiteCopy(tb testing.TB, directory string) string {
	tb.Helper()
	directory = testenv.Must(filepath.Abs(directory))(tb)
	work := tb.TempDir()
	testenv.Do(tb, os.CopyFS(filepath.Join(work, "src"), os.DirFS(filepath.Join(directory, "src"))))
	testenv.Do(tb, os.Symlink(filepath.Join(directory, "node_modules"), filepath.Join(work, "node_modules")))
	type object = map[string]any
	named := func(name string) object { return object{"name": name} }
	config := testenv.Must(json.Marshal(object{
		"rateLimits": object{"login": 1000}, // milliseconds after a log-in: core's default of YGGDRASIL_LOGIN_INTERVAL
		"data": object{
			"user1": object{"email": noPlayer, "password": Password},
			"user2": object{"email": onePlayer, "password": Password, "character1": named(classicPlayer)},
			"user3": object{"email": twoPlayers, "password": Password, "character1": named(slimPlayer), "character2": named(caped)},
		},
		"characterNameLogin": true,
	}))(tb)
	stack.WriteFile(tb, work, "yggdrasil-config.js", "module.exports = "+string(config))
	return work
}

// runMocha runs some of the tests and returns their names.
func runMocha(tb testing.TB, work, root string, selection ...string) (passed, failed []string) {
	tb.Helper()
	arguments := append([]string{filepath.Join("node_modules", ".bin", "mocha"), "src/test", "--timeout", "10000", "--reporter", "json"}, selection...)
	command := exec.CommandContext(tb.Context(), "node", arguments...)
	command.Dir = work
	command.Env = append(os.Environ(), "npm_config_api_root="+root)
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	// The exit status is the number of failed tests. The report follows a line with the root.
	_, report, _ := bytes.Cut(output, []byte("\n{"))
	var decoded struct {
		Passes   []struct{ FullTitle string }
		Failures []struct {
			FullTitle string
			Err       struct{ Message string }
		}
	}
	if malformed := json.Unmarshal(append([]byte("{"), report...), &decoded); malformed != nil {
		tb.Fatalf("mocha printed no report: %v\n%s%s", errors.Join(err, malformed), output, messages.Bytes())
	}
	for _, pass := range decoded.Passes {
		passed = append(passed, pass.FullTitle)
	}
	for _, failure := range decoded.Failures {
		failed = append(failed, failure.FullTitle+": "+failure.Err.Message)
	}
	return passed, failed
}

// aliasProxy is a proxy of a site that gives the textures of profiles other addresses, as the mock
// does: they end in a hash of the pixels. It ignores signatures.
type aliasProxy struct {
	httputil.ReverseProxy
	url string

	mu       sync.Mutex
	textures map[string]string // addresses of the site by path here
}

// aliases is the path of the textures' other addresses.
const aliases = "/aliases/"

func startAliasProxy(tb testing.TB, site string) *aliasProxy {
	tb.Helper()
	upstream := testenv.Must(url.Parse(site))(tb)
	p := &aliasProxy{textures: map[string]string{}}
	p.Rewrite = func(r *httputil.ProxyRequest) {
		p.mu.Lock()
		texture, isAlias := p.textures[r.In.URL.Path]
		p.mu.Unlock()
		r.SetURL(upstream)
		r.Out.Header.Del("Accept-Encoding") // so that the transport decodes the body
		if address, err := url.Parse(texture); isAlias && err == nil {
			r.Out.URL = address
		}
	}
	p.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusOK || !strings.Contains(r.Request.URL.Path, "/session/minecraft/profile/") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if body, err = p.alias(r.Request.Context(), body); err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	server := httptest.NewServer(p)
	tb.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// alias replaces the addresses of textures in a profile.
func (p *aliasProxy) alias(ctx context.Context, body []byte) ([]byte, error) {
	var profile struct {
		ID         string              `json:"id"`
		Name       string              `json:"name"`
		Properties []map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(body, &profile); err != nil {
		return nil, err
	}
	for _, property := range profile.Properties {
		if property["name"] != "textures" {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(property["value"])
		if err != nil {
			return nil, err
		}
		var payload map[string]any
		if err := json.Unmarshal(value, &payload); err != nil {
			return nil, err
		}
		textures, _ := payload["textures"].(map[string]any)
		for _, texture := range textures {
			texture, _ := texture.(map[string]any)
			address, _ := texture["url"].(string)
			file, err := get(ctx, address)
			if err != nil {
				return nil, err
			}
			hash, err := pixelHash(file)
			if err != nil {
				return nil, err
			}
			p.mu.Lock()
			p.textures[aliases+hash] = address
			p.mu.Unlock()
			texture["url"] = p.url + aliases + hash
		}
		if value, err = json.Marshal(payload); err != nil {
			return nil, err
		}
		property["value"] = base64.StdEncoding.EncodeToString(value)
	}
	return json.Marshal(profile)
}

// pixelHash returns the SHA-256 of a picture's width, height and opaque texels, as ARGB by columns.
func pixelHash(file []byte) (string, error) {
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return "", err
	}
	size := picture.Bounds().Size()
	hashed := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(size.X)), uint32(size.Y))
	for x := range size.X {
		for y := range size.Y {
			r, g, b, a := picture.At(x, y).RGBA()
			if a != 0xffff {
				return "", fmt.Errorf("the texel at %d, %d is not opaque", x, y)
			}
			hashed = append(hashed, uint8(a>>8), uint8(r>>8), uint8(g>>8), uint8(b>>8))
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(hashed)), nil
}
