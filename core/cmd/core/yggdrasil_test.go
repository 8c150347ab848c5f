package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// keyFile writes a key of so many bits and returns its path.
func keyFile(t *testing.T, bits int) string {
	t.Helper()
	private := testenv.Must(rsa.GenerateKey(rand.Reader, bits))(t)
	der := testenv.Must(x509.MarshalPKCS8PrivateKey(private))(t)
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testenv.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// A new key has the size that the protocol recommends, and is one that core serve takes.
func TestKeysYggdrasil(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t) // making a key takes seconds

	text := succeed(t, nil, "", "keys", "yggdrasil")
	testenv.Must(core.ParseProfileKey([]byte(text)))(t)
	block, rest := pem.Decode([]byte(text))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	testenv.Check(t, err == nil && ok && key.N.BitLen() == 4096 && len(rest) == 0, "%v: the key is %T", err, parsed)
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
		public := "http://" + s.public
		launchers, site := httpservertest.Get(t, public+"/api/yggdrasil/"), httpservertest.Get(t, public+"/api/site")
		testenv.Equal(t, launchers.Status, status, "%v: the status", settings)
		isNamed := strings.Contains(site.Body, `"launchers":"/api/yggdrasil"`)
		testenv.Equal(t, isNamed, status == 200, "%v: the site names the API: %s", settings, site.Body)
		hasURL := strings.Contains(site.Body, `"textures_url":"https://textures.example.org"`)
		testenv.Equal(t, hasURL, slices.Contains(settings, textures), "%v: the site names the edges: %s", settings, site.Body)
		for _, got := range []httpservertest.Response{launchers, site} {
			location := got.Header.Get("X-Authlib-Injector-API-Location")
			testenv.Equal(t, location == "/api/yggdrasil/", status == 200, "%v: the location %q is right", settings, location)
		}
		s.end(t)
		const line = "launchers and game servers are not served"
		testenv.Check(t, s.logged(line) == (logged != "") && s.logged(logged),
			"%v: the log is\n%s", settings, strings.Join(s.log, "\n"))
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
		begins(t, serveError(t, append(environ, "CORE_YGGDRASIL_KEY_FILE="+path), ""), "CORE_YGGDRASIL_KEY_FILE is ")
	}
}
