package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// fakeCDN is a purge hook of a CDN. Core waits for its response until the test has checked the
// edges.
type fakeCDN struct {
	secret string
	purges chan purge
}

type purge struct {
	Tags    []string `json:"tags"`
	release chan struct{}
}

// startFakeCDN starts a fakeCDN and returns it with its URL.
func startFakeCDN(t *testing.T) (*fakeCDN, string) {
	t.Helper()
	n := &fakeCDN{secret: "a secret of core and the network", purges: make(chan purge)}
	closed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, []byte(n.secret))
		mac.Write([]byte(r.Header.Get("X-Veneer-Timestamp") + "." + string(body)))
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Veneer-Signature") != want {
			t.Errorf("a purge is signed %q; want %q", r.Header.Get("X-Veneer-Signature"), want)
		}
		p := purge{release: make(chan struct{})}
		if err := json.Unmarshal(body, &p); err != nil {
			t.Errorf("a purge is %s: %v", body, err)
		}
		select {
		case n.purges <- p:
			<-p.release
		case <-closed:
		}
	}))
	t.Cleanup(func() { close(closed); server.Close() })
	return n, server.URL
}

// await waits for a purge of a tag, and calls check before it responds.
func (c *fakeCDN) await(t *testing.T, tag string, check func()) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case p := <-c.purges:
			found := slices.Contains(p.Tags, tag)
			if found {
				check()
			}
			close(p.release)
			if found {
				return
			}
		case <-deadline:
			t.Fatalf("%s is not purged", tag)
		}
	}
}

// delayProxy returns the address of a proxy that delays what the server behind it sends.
func delayProxy(t *testing.T, address string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
			go func() { copyDelayed(client, upstream, delay); _ = client.Close() }()
		}
	}()
	return listener.Addr().String()
}

// copyDelayed copies with a delay.
func copyDelayed(to io.Writer, from io.Reader, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1<<10)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			pieces <- piece{buffer[:n], time.Now().Add(delay)}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			for range pieces { // until the other direction ends, too
			}
		}
	}
}

// tagsAt returns the cache tags of the response at a URL.
func tagsAt(t *testing.T, address string) []string {
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
	return strings.Fields(response.Header.Get("Surrogate-Key"))
}

// twoCores returns two cores of one database that have not started.
func twoCores(t *testing.T, files blobstore.Config, settings map[string]string) (one, other *stack.Process) {
	t.Helper()
	one, other = stack.NewCore(t, files), stack.NewCore(t, files)
	for name, value := range settings {
		one.Set(name, value)
		other.Set(name, value)
	}
	other.Set("CORE_DATABASE_URL", one.Setting("CORE_DATABASE_URL"))
	return one, other
}

// If a core is killed before the hook has responded to its purge, another core sends the purge.
func TestPurgeSurvivesCoreCrash(t *testing.T) {
	t.Parallel()
	cdn, hook := startFakeCDN(t)
	core, other := twoCores(t, blobstoretest.Directory(t).Config, map[string]string{
		"CORE_PURGE_URL": hook, "CORE_PURGE_SECRET": cdn.secret, "CORE_PURGE_TIMEOUT": "1s",
	})
	core.Start(t)
	core.AwaitReady(t)
	// Purges begin a moment after the start, so the first change may precede them. After the
	// first one, this core is the one that purges.
	ann := signUp(t, "http://"+core.Address(t, "public"))
	for i, purged := 0, false; !purged; i++ {
		ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": fmt.Sprint("Ann_", i)})
		select {
		case p := <-cdn.purges:
			close(p.release)
			purged = true
		case <-time.After(time.Second):
		}
	}
	other.Start(t)
	other.AwaitReady(t)
	ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Zoe"})
	cdn.await(t, "name-zoe", func() { core.Kill(t) })
	cdn.await(t, "name-zoe", func() {})
}

// A change is purged by the tags of the answers, and not before every edge would refill the CDN
// with the new picture: neither one of another core, nor one with a slow stream.
func TestPurgeWaitsForEveryEdge(t *testing.T) {
	t.Parallel()
	cdn, hook := startFakeCDN(t)
	files := blobstoretest.Directory(t).Config
	core, other := twoCores(t, files, map[string]string{
		"CORE_PURGE_URL": hook, "CORE_PURGE_SECRET": cdn.secret,
		"CORE_PURGE_TIMEOUT": "1m", // checking the edges may take long
	})
	core.Start(t)
	other.Start(t)
	edges := []*stack.Process{stack.NewEdge(t, files, core), stack.NewEdge(t, files, other)}
	edges[1].Set("EDGE_CORE_URL", "http://"+delayProxy(t, other.Address(t, "edges"), 300*time.Millisecond))
	var avatars []string
	for _, edge := range edges {
		edge.Start(t)
		avatars = append(avatars, "http://"+edge.Address(t, "public")+"/avatar/player/ann_1?png")
		edge.AwaitReady(t)
	}
	wantTag := func(want string) {
		t.Helper()
		for i, avatar := range avatars {
			if tags := tagsAt(t, avatar); !slices.Contains(tags, want) {
				t.Errorf("edge %d tags the avatar %v; want %s among them", i, tags, want)
			}
		}
	}
	wantPicture := func(sheet *image.NRGBA) func() {
		return func() {
			t.Helper()
			for i, avatar := range avatars {
				picture, status := fetch(t, avatar)
				if picture == nil {
					t.Errorf("edge %d answers %d when the change is purged", i, status)
				} else if problem := difference(picture, sheet); problem != "" {
					t.Errorf("edge %d shows another picture when the change is purged: %s", i, problem)
				}
			}
		}
	}

	ann := signUp(t, "http://"+core.Address(t, "public"))
	wantTag("name-ann_1")
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	cdn.await(t, "name-ann_1", func() {})
	tag := fmt.Sprintf("player-%d", pid)
	wantTag(tag)
	for i := range 3 {
		sheet := drawSheet(uint8(50 * (i + 1)))
		tid := ann.upload(t, fmt.Sprint("skin ", i), sheet).Data.TID
		ann.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), map[string]any{"skin": tid})
		cdn.await(t, tag, wantPicture(sheet))
		wantTag(tag)
	}
}
