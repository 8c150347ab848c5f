package deploytest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
)

const purgeSecret = "a secret of core and the receiver"

// Varnish with the receiver of docs/operations/cdn.md shows a change long before its cached answer
// would expire. The receiver rejects a purge without a fresh signature of core.
func TestPurgeReceiver(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := stack.NewCore(t, files)
	public, receiver := stack.FreeAddress(t), stack.FreeAddress(t)
	core.Set("CORE_LISTEN", public)
	core.Set("CORE_PURGE_URL", "http://"+receiver)
	core.Set("CORE_PURGE_SECRET", purgeSecret)
	core.Start(t)
	core.AwaitReady(t)
	edge := stack.NewEdge(t, files, core)
	edge.Start(t)
	edge.AwaitReady(t)
	backend := server{public: edge.Address(t, "public"), operators: edge.Address(t, "operators"), port: "8081", checkPort: "9081"}
	one, two := backend, backend
	one.host, two.host = "edge-1", "edge-2"
	cache := varnishBalancer.start(t, []server{{"core", "8080", "9080", public, public}, one, two})
	startReceiver(t, receiver, strings.TrimPrefix(cache, "http://"))

	v := client{cache, core.SignIn(t, 1)[0].Bearer, &http.Client{Timeout: requestTimeout}}
	var skins [2]texture
	for i := range skins {
		var err error
		if skins[i], err = v.upload(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := v.do(t.Context(), http.MethodPost, "/api/players", jsonType, []byte(`{"name":"Ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	var player struct{ Data struct{ PID int } }
	if err := json.Unmarshal(answer, &player); err != nil {
		t.Fatal(err)
	}
	for _, expected := range []texture{skins[0], skins[1], skins[0]} {
		path := fmt.Sprintf("/api/players/%d/textures", player.Data.PID)
		if _, err := v.do(t.Context(), http.MethodPut, path, jsonType, fmt.Appendf(nil, `{"skin":%d}`, expected.TID)); err != nil {
			t.Fatal(err)
		}
		// Until then the file may be cached and purged once more.
		awaitPurged(t, core.Setting("CORE_DATABASE_URL"))
		awaitCached(t, cache+"/skin/ann.png", expected.Hash)
		if found, cached := fetchHash(t, cache+"/skin/ANN.Png"); !cached || found != expected.Hash {
			t.Errorf("in other case: file %s, cached: %v; want %s, cached", found, cached, expected.Hash)
		}
	}

	now := time.Now()
	for _, f := range []struct {
		signed string
		at     time.Time
		secret string
		want   int
		cached bool // whether Varnish still has the file
	}{
		{"by another", now, "another secret", http.StatusForbidden, true},
		{"a long time ago", now.Add(-10 * time.Minute), purgeSecret, http.StatusForbidden, true},
		{"as core does", now, purgeSecret, http.StatusNoContent, false},
	} {
		if got := postPurge(t, "http://"+receiver, f.secret, f.at); got != f.want {
			t.Errorf("a purge signed %s: %d; want %d", f.signed, got, f.want)
		}
		if _, cached := fetchHash(t, cache+"/skin/ann.png"); cached != f.cached {
			t.Errorf("after a purge signed %s the file is cached: %v", f.signed, cached)
		}
	}
}

// startReceiver runs the receiver of docs/operations/cdn.md at an address, for the Varnish at
// another.
func startReceiver(t *testing.T, address, cache string) {
	t.Helper()
	requireProgram(t, "python3")
	page, err := os.ReadFile(filepath.Join(top, "docs/operations/cdn.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```python\n(.*?)^```$").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/operations/cdn.md has no receiver")
	}
	host, port := hostPort(t, address)
	script := replaceOnce(t, string(found[1]), `("127.0.0.1", 8999)`, fmt.Sprintf("(%q, %s)", host, port))
	runServer(t, address, t.TempDir(), []string{"SECRET=" + purgeSecret, "VARNISHES=" + cache}, "python3", "-c", script)
}

// awaitPurged waits until core has no pending purges.
func awaitPurged(t *testing.T, database string) {
	t.Helper()
	conn := postgrestest.Conn(t, database)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(requestTimeout); ; <-tick.C {
		var done bool
		if err := conn.QueryRow(t.Context(), "SELECT purges.revision = feed.revision FROM purges, feed").Scan(&done); err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("core still has pending purges")
		}
	}
}

// awaitCached waits until a cache has the file with a hash for an address.
func awaitCached(t *testing.T, address, hash string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(requestTimeout); ; <-tick.C {
		found, cached := fetchHash(t, address)
		if cached && found == hash {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("for %s Varnish serves %s, cached: %v; want %s, cached", address, found, cached, hash)
		}
	}
}

// fetchHash returns the hash of the file at an address of Varnish, and whether it was a cache hit.
func fetchHash(t *testing.T, address string) (hash string, cached bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	file, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	// On a hit X-Varnish names two requests: this one, and the one that filled the cache.
	return skin.HashOf(file).String(), len(strings.Fields(response.Header.Get("X-Varnish"))) == 2
}

// postPurge posts a purge of everything, signed with a secret at a time, and returns the status.
func postPurge(t *testing.T, address, secret string, at time.Time) int {
	t.Helper()
	body, stamp := []byte(`{"epoch":"e","revision":1,"all":true}`), strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "." + string(body)))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Veneer-Timestamp", stamp)
	request.Header.Set("X-Veneer-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
