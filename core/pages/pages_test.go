package pages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/pages"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// countingStore is the real store. It counts calls, and fails if it is told so.
type countingStore struct {
	core.ShowcaseStore
	calls    atomic.Int64
	isBroken atomic.Bool

	isPanicking atomic.Bool
	hold        chan struct{} // which calls wait for, if it is not nil
}

func (c *countingStore) Walls(ctx context.Context, limit int) (core.Walls, error) {
	c.calls.Add(1)
	if c.hold != nil {
		<-c.hold
	}
	if c.isPanicking.Load() {
		panic("a panic of the store")
	}
	if c.isBroken.Load() {
		return core.Walls{}, fault.NewUnavailable("postgres", errors.New("it is away"))
	}
	return c.ShowcaseStore.Walls(ctx, limit)
}

func (c *countingStore) Texture(ctx context.Context, tid core.TextureID) (core.Texture, error) {
	c.calls.Add(1)
	if c.isBroken.Load() {
		return core.Texture{}, fault.NewUnavailable("postgres", errors.New("it is away"))
	}
	return c.ShowcaseStore.Texture(ctx, tid)
}

func (c *countingStore) WornPlayer(ctx context.Context, key string) (core.WornPlayer, error) {
	c.calls.Add(1)
	return c.ShowcaseStore.WornPlayer(ctx, key)
}

// server is a server of pages over a real database.
type server struct {
	coretest.Client
	site  *coretest.Site
	feed  *core.Feed
	store *countingStore
	user  core.User
}

var describedSite = pages.Site{
	Branding: core.Branding{Name: "Skins & Co", Accent: core.DefaultAccent}, PublicURL: "https://skins.example.org", PicturesURL: "https://pictures.example.org",
	LaunchersPath: "/api/yggdrasil/", Files: "/console/0123456789abcdef", IsOpen: true, Texts: func() *core.SiteTexts { return nil },
}

// The pages link to the operator's, and have the announcement.
func TestOperator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.md": "Be kind.", "rules.zh.md": "请友善。", "announcement.md": "Closed on *Sunday*."} {
		testenv.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	site := describedSite
	site.Contact = "help@example.org"
	site.Texts = testenv.Must(core.NewSitePages(dir, slog.New(slog.DiscardHandler)))(t).Texts
	s := start(t, pages.Config{Wall: "on", Indexing: "on"}, site)
	for _, path := range []string{"/", "/t/1"} {
		for lang, title := range map[string]string{"en": "Rules", "zh": "规则"} {
			got := string(s.Get(t, path+"?lang="+lang).Body)
			testenv.Contains(t, got, `<a href="/site/rules?lang=`+lang+`">`+title+`</a>`, "%s", path)
			testenv.Contains(t, got, `<a href="mailto:help@example.org">`, "%s", path)
			testenv.Contains(t, got, `<aside class="announcement" lang="en"><p>Closed on <em>Sunday</em>.</p>`, "%s", path)
		}
	}
}

func start(t *testing.T, cfg pages.Config, site pages.Site) *server {
	t.Helper()
	s := &server{site: coretest.NewSite(t)}
	d := s.site.NewDomain(t)
	s.store = &countingStore{ShowcaseStore: d.DB}
	feed := core.NewFeed(d.DB, s.site.Log)
	d.DB.OnChange(feed.Committed)
	options := s.site.Options()
	p := pages.New(options, core.NewShowcase(s.store), feed, cfg, site, clientapi.Limiters{}, s.site.Clock)
	s.feed = feed
	coretest.Background(t, feed.Run)
	testenv.Eventually(t, "the feed has a head", func() bool { return feed.Head().Epoch != "" }) // until then changes may be missing
	s.Client = coretest.Client{Domain: d, Server: options.NewServer(p.Handler(options.AddressLimiter())), Check: func(*testing.T, coretest.Response) {}}.From(t, "192.0.2.1")
	s.user = s.site.AddUser(t, d, "none", true)
	return s
}

var shown = pages.Config{Wall: "on", Indexing: "on"}

// upload uploads a skin, or a cape for variant 0.
func (s *server) upload(t *testing.T, name string, variant byte, isPublic bool) core.TextureID {
	t.Helper()
	file, kind := coretest.SkinFile(t, variant), "steve"
	if variant == 0 {
		file, kind = coretest.CapeFile(t), "cape"
	}
	return testenv.Must(s.Domain.Textures.Upload(t.Context(), s.user.ID, core.Upload{File: file, Name: name, Type: kind, Public: isPublic}))(t).ID
}

func (s *server) caller() core.Caller { return core.Caller{User: s.user} }

// get returns a page, which must have a status.
func (s *server) get(t *testing.T, status int, path string, headers ...string) coretest.Response {
	t.Helper()
	got := s.Send(t, "GET", path, coretest.Body{}, headers...)
	testenv.Equal(t, got.Status, status, "GET %s: %.300s: the status", path, got.Body)
	testenv.Equal(t, got.Header.Get("Content-Type"), "text/html; charset=utf-8", "GET %s: the type", path)
	policy := got.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'", "img-src 'self' blob: data: https://pictures.example.org;"} {
		testenv.Contains(t, policy, part, "GET %s: the policy", path)
	}
	testenv.Check(t, !strings.Contains(policy, "unsafe") && !inline.Match(got.Body), "GET %s: the policy is %s, or there are inline handlers or styles", path, policy)
	return got
}

var inline = regexp.MustCompile(` (on[a-z]+|style)="`)

// has checks that a page has texts, and lacks those that begin with an exclamation mark.
func has(t *testing.T, page coretest.Response, texts ...string) {
	t.Helper()
	for _, text := range texts {
		lacked, isLacked := strings.CutPrefix(text, "!")
		testenv.Check(t, strings.Contains(string(page.Body), strings.TrimPrefix(lacked, "!")) != isLacked, "%s: want %s in\n%s", page.Target, text, page.Body)
	}
}

func TestFront(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	empty := s.get(t, 200, "/")
	has(t, empty, "<h1><bdi>Skins &amp; Co</bdi></h1>", `<form action="/console/library"`, `href="/console/register"`, `href="/pictures"`, "/body/user/0.webp", "!Newest skins",
		`<link rel="canonical" href="https://skins.example.org/">`, "!og:image")
	testenv.Equal(t, empty.Header.Get("X-Authlib-Injector-Api-Location"), "/api/yggdrasil/", "the header for launchers")
	plain, hidden, cape := s.upload(t, `<b>"Fox"`, 1, true), s.upload(t, "Secret", 2, false), s.upload(t, "Cloak", 0, true)
	s.site.Advance(time.Minute)
	page := s.get(t, 200, "/")
	has(t, page, "Newest skins", "Most liked skins", "&lt;b&gt;&#34;Fox&#34;", `<a href="/t/1"><img src="https://pictures.example.org/body/1.webp?height=352"`, "!Secret", "!Cloak",
		`content="https://pictures.example.org/card/texture/1.png?background=1f6b3a"`, `content="summary_large_image"`)
	testenv.Equal(t, [3]core.TextureID{plain, hidden, cape}, [3]core.TextureID{1, 2, 3}, "the textures")
	testenv.Equal(t, page.Header.Get("Cache-Tag"), "texture-1", "the tags")
	testenv.Check(t, len(page.Body) < 20<<10, "the front page has %d bytes", len(page.Body))

	reporter := core.Caller{User: s.site.AddUser(t, s.Domain, "none", true)}
	testenv.Do(t, s.Domain.Reports.Add(t.Context(), reporter, plain, "stolen"))
	s.site.Advance(time.Minute)
	has(t, s.get(t, 200, "/"), "!Fox", "!Newest skins")

	closed := describedSite
	closed.IsOpen, closed.Description, closed.PublicURL = false, "A sentence.", ""
	s = start(t, pages.Config{Wall: "off", Indexing: "off"}, closed)
	s.upload(t, "Fox", 1, true)
	page = s.get(t, 200, "/")
	has(t, page, "!Fox", "!/console/register", `data-known="Upload a skin"`, "A sentence.", `<meta name="robots" content="noindex">`, "!canonical")
	testenv.Equal(t, page.Header.Get("X-Robots-Tag"), "noindex", "the header for crawlers")
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	for accepted, tag := range map[string]string{
		"": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh-Hans", "de, en;q=0.5, zh;q=0.4": "en", "ZH;q=0.3": "zh-Hans", "en;q=0.1,zh;q=x": "en", "zh;q=0, fr": "en",
	} {
		for query, want := range map[string]string{"": tag, "?lang=zh": "zh-Hans", "?lang=en": "en", "?lang=xx": tag} {
			page := s.get(t, 200, "/"+query, "Accept-Language", accepted, "Cookie", "lang=zh")
			has(t, page, `<html lang="`+want+`">`)
			testenv.Equal(t, page.Header.Get("Content-Language"), want, "%q, %s: the language", accepted, query)
			cmptest.Same(t, page.Header.Values("Vary"), []string{"Accept-Language", "Accept-Encoding"}, "Vary")
		}
	}
	testenv.Equal(t, s.store.calls.Load(), 4, "queries, as links keep a chosen language")
}

var verbs = regexp.MustCompile(`%[a-z]`)

// All languages have the same texts, with the same arguments.
func TestWords(t *testing.T) {
	t.Parallel()
	all := pages.Words()
	for code, words := range all {
		for key, text := range all["en"] {
			translated, ok := words[key]
			testenv.Check(t, ok && translated != "", "core/pages/words/%s.json lacks %q: %q", code, key, text)
			cmptest.Same(t, verbs.FindAllString(translated, -1), verbs.FindAllString(text, -1), "%s: the verbs of %q", code, key)
		}
		testenv.Equal(t, len(words), len(all["en"]), "texts of %s", code)
	}
}

func TestPlayerPage(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	skin, cape := s.upload(t, "Fox", 1, true), s.upload(t, "Secret", 0, false)
	player := testenv.Must(s.Domain.Players.Create(t.Context(), s.caller(), "Ann_1"))(t)
	has(t, s.get(t, 200, "/p/Ann_1"), "Ann_1 wears no skin yet.", "default=avatar", "!og:image")
	testenv.Must(s.Domain.Players.SetTextures(t.Context(), s.caller().Owner(), player.ID, core.TextureSelection{Skin: &skin, Cape: &cape}))(t)
	testenv.Eventually(t, "the page shows the change", func() bool { return strings.Contains(string(s.get(t, 200, "/p/ANN_1/").Body), "Fox") })
	page := s.get(t, 200, "/p/ann_1")
	has(t, page, "<title>Ann_1 · Skins &amp; Co</title>", `<link rel="canonical" href="https://skins.example.org/p/Ann_1">`, `<a href="/t/1"><bdi>Fox</bdi></a>`, "a private texture", "!Secret", "!/t/2",
		`property="og:title" content="Ann_1"`, `property="og:image" content="https://pictures.example.org/card/player/Ann_1.png?background=1f6b3a"`, `name="theme-color" content="#1f6b3a"`,
		`<code data-alt="Ann_1: Face">https://pictures.example.org/face/player/Ann_1.png?size=96</code>`, "https://pictures.example.org/body/player/Ann_1.webp?height=480")
	testenv.Equal(t, page.Header.Get("Surrogate-Key"), "name-ann_1 player-1 texture-1", "the tags")
	testenv.Equal(t, page.Header.Get("Cache-Control"), "public, max-age=60, stale-while-revalidate=600", "Cache-Control")
	again := s.Send(t, "GET", "/p/Ann_1", coretest.Body{}, "If-None-Match", page.Header.Get("ETag"))
	again.HasStatus(t, 304)
	head := s.Send(t, "HEAD", "/p/Ann_1", coretest.Body{})
	testenv.Check(t, head.Status == 200 && len(head.Body) == 0 && head.Header.Get("ETag") == page.Header.Get("ETag"), "HEAD: %+v", head)
	s.Send(t, "POST", "/p/Ann_1", coretest.Body{}).IsError(t, 405, 3)
	has(t, s.get(t, 200, "/p/Ann_1?lang=zh"), `<a class="brand" href="/?lang=zh">`, `<a href="/t/1?lang=zh">`, `href="/console/library?lang=zh"`, `<link rel="canonical" href="https://skins.example.org/p/Ann_1?lang=zh">`,
		`hreflang="x-default" href="https://skins.example.org/p/Ann_1"`)
	has(t, s.get(t, 404, "/p/Nobody?lang=zh"), `<a class="button main" href="/?lang=zh">`)
	has(t, s.get(t, 200, "/p/Ann_1", "Accept-Language", "zh"), `<a class="brand" href="/">`, `<a href="/t/1">`)

	testenv.Do(t, s.Domain.Players.Delete(t.Context(), s.caller().Owner(), player.ID))
	testenv.Eventually(t, "the page is gone", func() bool { return s.Get(t, "/p/Ann_1").Status == 404 })
}

func TestTexturePage(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	s.upload(t, "Fox", 1, true)
	s.upload(t, "Secret", 2, false)
	s.upload(t, "Cloak", 0, true)
	has(t, s.get(t, 200, "/t/1"), "<h1><bdi>Fox</bdi></h1>", "Somebody", `<a class="button main" href="/console/texture?tid=1&amp;wear=1">Wear it</a>`, `href="https://pictures.example.org/skin/1?download"`,
		`data-model="default"`, `property="og:image" content="https://pictures.example.org/card/texture/1.png?background=1f6b3a"`, `<link rel="canonical" href="https://skins.example.org/t/1">`)
	cape := s.get(t, 200, "/t/3?lang=zh")
	has(t, cape, "披风", `href="https://pictures.example.org/cape/3?download"`, "/preview/3.webp")
	testenv.Equal(t, cape.Header.Get("Cache-Tag"), "texture-3", "the tag")

	name := "Vixen"
	testenv.Must(s.Domain.Textures.Change(t.Context(), s.caller().Owner(), 1, core.TextureChange{Name: &name}))(t)
	s.site.Advance(5 * time.Second) // no edge is told of it
	has(t, s.get(t, 200, "/t/1"), "Vixen")
	for path, tag := range map[string]string{
		"/t/2": "texture-2", "/t/4": "texture-4", "/t/01": "", "/t/x": "", "/t": "", "/t/1/x": "", "/p": "", "/p/Nobody": "name-nobody", "/p/a/b": "", "/p/" + strings.Repeat("x", 300): "", "/p/a%00b": "name-a%00b",
	} {
		page := s.get(t, 404, path, "Accept-Language", "zh")
		has(t, page, "这里什么也没有", `href="/"`, "!Secret", `content="noindex"`)
		testenv.Equal(t, page.Header.Get("Cache-Control"), "public, max-age=15", "%s: Cache-Control", path)
		testenv.Equal(t, page.Header.Get("Cache-Tag"), tag, "%s: the tag", path)
	}
}

// Requests share a query. While the database is away the former page is sent.
func TestCache(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	s.store.hold = make(chan struct{})
	const requests = 50
	done := make(chan int, requests)
	for range requests {
		go func() {
			got, err := s.Exchange("GET", "/", coretest.Body{})
			if err != nil {
				t.Error(err)
			}
			done <- got.Status
		}()
	}
	testenv.Eventually(t, "a query runs", func() bool { return s.store.calls.Load() == 1 })
	close(s.store.hold)
	for range requests {
		testenv.Equal(t, <-done, 200, "the status")
	}
	testenv.Equal(t, s.store.calls.Load(), 1, "queries of all requests")
	first := s.get(t, 200, "/")
	s.site.Advance(5 * time.Second)
	testenv.Equal(t, s.get(t, 200, "/").Header.Get("ETag"), first.Header.Get("ETag"), "the entity tag of the same page")
	testenv.Equal(t, s.store.calls.Load(), 2, "queries after some seconds")

	s.store.isBroken.Store(true)
	s.site.Advance(time.Hour)
	testenv.Equal(t, s.get(t, 200, "/").Header.Get("ETag"), first.Header.Get("ETag"), "the entity tag while the database is away")
	s.Send(t, "GET", "/?lang=zh", coretest.Body{}).HasStatus(t, 503)
	page := s.Send(t, "GET", "/?lang=zh", coretest.Body{}, "Accept", "text/html")
	page.HasStatus(t, 503)
	has(t, page, "<h1>现在无法显示此页面</h1>", `<a class="button main" href="/?lang=zh">`)
	testenv.Equal(t, page.Header.Get("Content-Type"), "text/html; charset=utf-8", "the type of an error for browsers")

	// After a panic the next request loads the page.
	s.store.isPanicking.Store(true)
	s.Send(t, "GET", "/?lang=zh", coretest.Body{}).HasStatus(t, 500)
	s.store.isPanicking.Store(false)
	s.store.isBroken.Store(false)
	s.get(t, 200, "/?lang=zh")
}

// While the database is away, a page is sent again unless it shows what was changed.
func TestCacheOfChangedTextures(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	before := s.feed.Head().Revision
	s.upload(t, "Fox", 1, true)
	s.upload(t, "Vixen", 2, true)
	testenv.Eventually(t, "the uploads are applied", func() bool { return s.feed.Head().Revision == before+2 })
	s.get(t, 200, "/t/1")
	s.get(t, 200, "/t/2")
	s.store.isBroken.Store(true)
	no := false
	testenv.Must(s.Domain.Textures.Change(t.Context(), s.caller().Owner(), 1, core.TextureChange{Public: &no}))(t)
	testenv.Eventually(t, "the page is no longer sent", func() bool { return s.Get(t, "/t/1").Status == 503 })
	s.site.Advance(time.Minute)
	s.get(t, 200, "/t/2")
	s.store.isBroken.Store(false)
	s.get(t, 404, "/t/1")
}

func TestIcons(t *testing.T) {
	t.Parallel()
	s := start(t, shown, describedSite)
	touch := s.Get(t, "/apple-touch-icon.png")
	picture := testenv.Must(png.Decode(bytes.NewReader(touch.Body)))(t)
	testenv.Equal(t, picture.Bounds().Dx(), 192, "the side of the touch icon")
	icon := s.Get(t, "/favicon.ico")
	testenv.Equal(t, icon.Header.Get("Content-Type"), "image/x-icon", "the type of the icon")
	small := testenv.Must(png.Decode(bytes.NewReader(icon.Body[22:])))(t)
	testenv.Equal(t, small.Bounds().Dx(), 32, "the side of the icon")
	testenv.Check(t, len(touch.Body)+len(icon.Body) < 4<<10, "the icons have %d and %d bytes", len(touch.Body), len(icon.Body))
	testenv.Equal(t, s.Get(t, "/.well-known/change-password").Header.Get("Location"), "/console/account?change=password", "where passwords are changed")
	manifest := s.Get(t, "/manifest.webmanifest")
	testenv.Equal(t, manifest.Header.Get("Content-Type"), "application/manifest+json", "the type of the manifest")
	has(t, manifest, `"start_url":"/console/"`, `"theme_color":"#1f6b3a"`)
	site := describedSite
	site.Logo = testenv.Must(os.ReadFile("../../docs/images/demo-face.png"))(t)
	logo := start(t, shown, site)
	for _, path := range []string{"/favicon.ico", "/apple-touch-icon.png"} {
		testenv.Check(t, bytes.Equal(logo.Get(t, path).Body, site.Logo), "%s is not the logo", path)
	}
	size := testenv.Must(png.DecodeConfig(bytes.NewReader(site.Logo)))(t)
	has(t, logo.Get(t, "/manifest.webmanifest"), fmt.Sprintf(`"sizes":"%dx%d"`, size.Width, size.Height))
	for _, root := range pages.Roots() {
		testenv.Check(t, slices.Contains(slices.Concat(roots.Paths, roots.Trees), root), "%s is no root of core", root)
	}
}
