package deploytest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const purgeSecret = "a secret of core and the receiver"

// Varnish with the receiver of docs/operations/cdn.md shows a change long before its cached answer
// would expire. The receiver rejects a purge without a fresh signature of core.
func TestPurgeReceiver(t *testing.T) {
	t.Parallel()
	core := site.NewCore(t, blobstoretest.Directory(t).Config)
	receiver := stack.FreeAddress(t)
	core.Set("CORE_PURGE_URL=http://"+receiver, "CORE_PURGE_SECRET="+purgeSecret)
	backend := addressesOf(t, site.StartWith(t, core).Edge)
	cache := varnishBalancer.startSite(t, []string{core.Address(t, "public")}, backend, backend)
	startReceiver(t, receiver, strings.TrimPrefix(cache, "http://"))

	v := &site.Client{Base: cache, Token: site.SignIn(t, core, 1)[0].Bearer}
	skins := []site.Texture{v.Upload(t, "Robot", skin.Classic, artwork.Robot()), v.Upload(t, "Fox", skin.Classic, artwork.Fox())}
	pid, conn := v.AddPlayer(t, "Ann"), postgrestest.Conn(t, core.Setting("CORE_DATABASE_URL"))
	for _, expected := range []site.Texture{skins[0], skins[1], skins[0]} {
		v.SetSkin(t, pid, expected.TID)
		// Until then the file may be cached and purged once more.
		testenv.Eventually(t, "core has sent all purges", func() (done bool) {
			testenv.Do(t, conn.QueryRow(t.Context(), "SELECT purges.revision = feed.revision FROM purges, feed").Scan(&done))
			return done
		})
		testenv.Eventually(t, "Varnish has the file "+expected.Hash, func() bool {
			found, cached := fetchHash(t, cache+"/skin/ann.png")
			return cached && found == expected.Hash
		})
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
		body, stamp := `{"epoch":"e","revision":1,"all":true}`, strconv.FormatInt(f.at.Unix(), 10) // of everything
		mac := hmac.New(sha256.New, []byte(f.secret))
		mac.Write([]byte(stamp + "." + body))
		header := http.Header{"X-Veneer-Timestamp": {stamp}, "X-Veneer-Signature": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}}
		answer := httpservertest.Call(t, nil, http.MethodPost, "http://"+receiver, header, body)
		testenv.Equal(t, answer.Status, f.want, "a purge signed %s", f.signed)
		_, cached := fetchHash(t, cache+"/skin/ann.png")
		testenv.Equal(t, cached, f.cached, "after a purge signed %s the file is cached", f.signed)
	}
}

// startReceiver runs the receiver of docs/operations/cdn.md at an address, for the Varnish at
// another.
func startReceiver(t *testing.T, address, cache string) {
	t.Helper()
	requireProgram(t, "python3")
	found := regexp.MustCompile("(?ms)^```python\n(.*?)^```$").FindStringSubmatch(read(t, "docs/operations/cdn.md"))
	if found == nil {
		t.Fatal("docs/operations/cdn.md has no receiver")
	}
	host, port := stack.HostPort(address)
	script := replaceOnce(t, found[1], `("127.0.0.1", 8999)`, fmt.Sprintf("(%q, %s)", host, port))
	stack.RunServer(t, address, []string{"SECRET=" + purgeSecret, "VARNISHES=" + cache, "PURGE_SECRET=" + banSecret}, "python3", "-c", script)
}

// fetchHash returns the hash of the file at an address of Varnish, and whether it was a cache hit.
func fetchHash(t *testing.T, address string) (hash string, cached bool) {
	t.Helper()
	response := httpservertest.Get(t, address)
	// On a hit X-Varnish names two requests: this one, and the one that filled the cache.
	return skin.HashOf([]byte(response.Body)).String(), len(strings.Fields(response.Header.Get("X-Varnish"))) == 2
}
