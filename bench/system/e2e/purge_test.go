package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
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

func startFakeCDN(t *testing.T) (*fakeCDN, string) {
	t.Helper()
	n := &fakeCDN{secret: "a secret of core and the network", purges: make(chan purge)}
	closed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testenv.Is(t, err, nil, "the body of a purge")
		mac := hmac.New(sha256.New, []byte(n.secret))
		mac.Write([]byte(r.Header.Get("X-Veneer-Timestamp") + "." + string(body)))
		want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
		testenv.Equal(t, r.Header.Get("X-Veneer-Signature"), want, "the signature of a purge")
		p := purge{release: make(chan struct{})}
		testenv.Is(t, json.Unmarshal(body, &p), nil, "a purge, %s", body)
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
	deadline := time.After(2 * time.Minute)
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

// slowBody is the body of a response that arrives late, part by part.
type slowBody struct{ io.ReadCloser }

func (b slowBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	<-time.After(300 * time.Millisecond)
	return n, err
}

// slowProxy returns the URL of a proxy that delays what a server sends.
func slowProxy(t *testing.T, target string) string {
	t.Helper()
	to := testenv.Must(url.Parse(target))(t)
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval:  -1, // at once
		ModifyResponse: func(r *http.Response) error { r.Body = slowBody{r.Body}; return nil },
	})
	t.Cleanup(server.Close)
	return server.URL
}

// twoCores returns two cores of one database that have not started.
func twoCores(t *testing.T, files blobstore.Config, settings ...string) (one, other *stack.Process) {
	t.Helper()
	one = site.NewCore(t, files)
	one.Set(settings...)
	return one, one.Clone(t)
}

// If a core is killed before the hook has responded to its purge, another core sends the purge.
func TestPurgeSurvivesCoreCrash(t *testing.T) {
	t.Parallel()
	cdn, hook := startFakeCDN(t)
	core, other := twoCores(t, blobstoretest.Directory(t).Config,
		"CORE_PURGE_URL="+hook, "CORE_PURGE_SECRET="+cdn.secret, "CORE_PURGE_TIMEOUT=1s")
	core.StartReady(t)
	// Purges begin a moment after the start, so the first change may precede them. After the
	// first one, this core is the one that purges.
	ann := signUp(t, core.BaseURL(t, "public"))
	for i, purged := 0, false; !purged; i++ {
		ann.AddPlayer(t, fmt.Sprint("Ann_", i))
		select {
		case p := <-cdn.purges:
			close(p.release)
			purged = true
		case <-time.After(time.Second):
		}
	}
	other.StartReady(t)
	ann.AddPlayer(t, "Zoe")
	cdn.await(t, "name-zoe", func() { core.Kill(t) })
	cdn.await(t, "name-zoe", func() {})
}

// A change is purged by the tags of the answers, and not before every edge would refill the CDN
// with the new picture: neither one of another core, nor one with a slow stream.
func TestPurgeWaitsForEveryEdge(t *testing.T) {
	t.Parallel()
	cdn, hook := startFakeCDN(t)
	files := blobstoretest.Directory(t).Config
	core, other := twoCores(t, files,
		"CORE_PURGE_URL="+hook, "CORE_PURGE_SECRET="+cdn.secret, "CORE_PURGE_TIMEOUT=1m") // checking the edges may take long
	core.Start(t)
	other.Start(t)
	edges := []*stack.Process{site.NewEdge(t, files, core), site.NewEdge(t, files, other)}
	edges[1].Set("EDGE_CORE_URL=" + slowProxy(t, other.BaseURL(t, "edges")))
	var avatars []string
	for _, edge := range edges {
		edge.Start(t)
		avatars = append(avatars, edge.BaseURL(t, "public")+"/avatar/player/ann_1?png")
		edge.AwaitReady(t)
	}
	wantTag := func(want string) {
		t.Helper()
		for i, avatar := range avatars {
			tags := strings.Fields(httpservertest.Get(t, avatar).Header.Get("Surrogate-Key"))
			if !slices.Contains(tags, want) {
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
				} else {
					testenv.Equal(t, difference(picture, sheet), "", "difference of edge %d when the change is purged", i)
				}
			}
		}
	}

	ann := signUp(t, core.BaseURL(t, "public"))
	wantTag("name-ann_1")
	pid := ann.AddPlayer(t, "Ann_1")
	cdn.await(t, "name-ann_1", func() {})
	tag := fmt.Sprintf("player-%d", pid)
	wantTag(tag)
	for i := range 3 {
		sheet := drawSheet(uint8(50 * (i + 1)))
		tid := upload(t, ann, fmt.Sprint("skin ", i), sheet).TID
		ann.SetSkin(t, pid, tid)
		cdn.await(t, tag, wantPicture(sheet))
		wantTag(tag)
	}
}
