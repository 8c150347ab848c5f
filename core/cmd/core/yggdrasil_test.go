package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// keyFile writes a key of so many bits and returns its path.
func keyFile(t *testing.T, bits int) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A new key has the size that the protocol recommends, and is one that core serve takes.
func TestKeysYggdrasil(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t) // making a key takes seconds

	text := succeed(t, nil, "", "keys", "yggdrasil")
	if _, err := core.ParseProfileKey([]byte(text)); err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode([]byte(text))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); err != nil || !ok || key.N.BitLen() != 4096 || len(rest) != 0 {
		t.Errorf("%v: the key is %T", err, parsed)
	}
	fails(t, "takes no argument", nil, "", "keys", "yggdrasil", "file")
}

// Launchers are served with an address and a key. Without them core starts as before, with a line in
// the log.
func TestServeLaunchers(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.URL(t))
	succeed(t, environ, "", "migrate")
	const textures = "CORE_TEXTURES_URL=https://textures.example.org/"
	f := func(status int, logged string, settings ...string) {
		t.Helper()
		s := startServe(t, append(environ, settings...))
		for _, path := range []string{"/api/yggdrasil/", "/api/site"} {
			resp, err := http.Get("http://" + s.public + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if path == "/api/site" && (err != nil || strings.Contains(string(body), `"launchers":"/api/yggdrasil"`) != (status == 200)) {
				t.Errorf("%v: the site is %s, %v", settings, body, err)
			}
			if path == "/api/site" && strings.Contains(string(body), `"textures_url":"https://textures.example.org"`) != slices.Contains(settings, textures) {
				t.Errorf("%v: the site is %s", settings, body)
			}
			if path != "/api/site" && resp.StatusCode != status {
				t.Errorf("%v: %s: %d; want %d", settings, path, resp.StatusCode, status)
			}
			if location := resp.Header.Get("X-Authlib-Injector-API-Location"); (location == "/api/yggdrasil/") != (status == 200) {
				t.Errorf("%v: %s has the location %q", settings, path, location)
			}
		}
		s.end(t)
		const line = "launchers and game servers are not served"
		if s.logged(line) != (logged != "") || !s.logged(logged) {
			t.Errorf("%v: the log is\n%s", settings, strings.Join(s.log, "\n"))
		}
	}
	public, key := "CORE_PUBLIC_URL=https://skins.example.org", "CORE_YGGDRASIL_KEY_FILE="+keyFile(t, 2048)
	f(404, `"missing":"CORE_PUBLIC_URL"`)
	f(404, `"missing":"CORE_PUBLIC_URL"`, key)
	f(404, `"missing":"CORE_YGGDRASIL_KEY_FILE"`, public)
	f(404, `"missing":"CORE_YGGDRASIL_KEY_FILE"`, public, "CORE_YGGDRASIL_KEY_FILE="+writeFile(t, "\n"))
	f(404, "", public, key, "CORE_YGGDRASIL=off")
	f(200, "", public, key)
	f(200, "", public, key, textures)
}

// A wrong key stops core with a line that reveals nothing of it.
func TestWrongProfileKey(t *testing.T) {
	t.Parallel()

	environ := environment(t, "postgres://plain:hunter2@127.0.0.1:1/plain")
	for _, path := range []string{keyFile(t, 1024), writeFile(t, "hunter2"), writeFile(t, "-----BEGIN PRIVATE KEY-----\nhunter2=\n-----END PRIVATE KEY-----\n"), t.TempDir()} {
		message := serveError(t, append(environ, "CORE_YGGDRASIL_KEY_FILE="+path))
		if !strings.HasPrefix(message, "CORE_YGGDRASIL_KEY_FILE is ") || strings.Contains(message, "hunter2") {
			t.Errorf("the error is %q", message)
		}
	}
}
