package console

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// newerScript takes away what Safari 15.4 or Firefox 102 lacks of what browsers offer to scripts.
const newerScript = `for (const [owner, names] of [
	[URLSearchParams.prototype, ["size"]], [URL, ["canParse", "parse"]], [AbortSignal, ["any", "timeout"]],
	[Array, ["fromAsync"]], [Array.prototype, ["findLast", "findLastIndex", "toSorted", "toReversed", "toSpliced", "with"]],
	[Uint8Array, ["fromBase64", "fromHex"]], [Uint8Array.prototype, ["toBase64", "toHex"]],
	[Object, ["groupBy"]], [Map, ["groupBy"]], [Set.prototype, ["union", "intersection", "difference", "isSubsetOf", "isSupersetOf", "isDisjointFrom", "symmetricDifference"]],
	[Promise, ["withResolvers", "try"]], [String.prototype, ["isWellFormed", "toWellFormed"]], [RegExp, ["escape"]], [Intl, ["Segmenter", "DurationFormat"]],
	[Element.prototype, ["checkVisibility", "setHTMLUnsafe", "moveBefore", "getHTML"]], [HTMLElement.prototype, ["showPopover", "togglePopover", "hidePopover", "popover", "inert"]],
	[HTMLFormElement.prototype, ["requestSubmit"]], [HTMLInputElement.prototype, ["showPicker"]], [HTMLDialogElement.prototype, ["requestClose", "closedBy"]],
	[Document.prototype, ["startViewTransition"]], [Navigator.prototype, ["clipboard", "userActivation", "share", "connection"]], [ReadableStream, ["from"]],
	[window, ["OffscreenCanvas", "requestIdleCallback", "navigation", "scheduler", "CompressionStream", "DecompressionStream", "Iterator", "CloseWatcher", "trustedTypes", "queryLocalFonts"]],
]) for (const name of names) delete owner[name];`

// Parts of style sheets that they lack. Those that a rule can have beside a fallback are replaced by what no browser
// has; the others take a whole rule, or all after them, away.
var (
	newerCSS       = regexp.MustCompile(`light-dark\(|color-mix\(|oklch\(|:has\(|(?:text-wrap|field-sizing|interpolate-size|backdrop-filter|content-visibility):|@container|@starting-style|subgrid`)
	newerUnits     = regexp.MustCompile(`([0-9.])[dsl]v([hwbi]|min|max)\b`)
	newerCSSSyntax = regexp.MustCompile(`&|@media[^{]*[<>]|@scope|rgb\(from`)
)

// oldBrowser opens a page of a site as a browser shows it that lacks what Safari 15.4 or Firefox 102 lacks.
func oldBrowser(t *testing.T, site string) *tab {
	t.Helper()
	target := testenv.Must(url.Parse(site))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(target)
		request.Out.Host = request.In.Host
		request.Out.Header.Del("Accept-Encoding")
	}}
	proxy.ModifyResponse = func(response *http.Response) error {
		kind := response.Header.Get("Content-Type")
		if !strings.HasPrefix(kind, "text/css") && !strings.HasPrefix(kind, "text/html") {
			return nil
		}
		content, err := io.ReadAll(response.Body)
		style := content
		if strings.HasPrefix(kind, "text/html") {
			_, style, _ = bytes.Cut(content, []byte("<style>"))
			style, _, _ = bytes.Cut(style, []byte("</style>"))
		}
		if found := newerCSSSyntax.Find(style); found != nil {
			t.Errorf("%s has %q, after which old browsers ignore rules", response.Request.URL.Path, found)
		}
		old := newerUnits.ReplaceAll(newerCSS.ReplaceAllFunc(style, func(found []byte) []byte { return append([]byte("-future-"), found...) }), []byte("${1}future$2"))
		content = bytes.Replace(content, style, old, 1)
		response.Body = io.NopCloser(bytes.NewReader(content))
		response.Header.Set("Content-Length", fmt.Sprint(len(content)))
		policy := strings.Replace(response.Header.Get("Content-Security-Policy"), httpserver.SourceHash(string(style)), httpserver.SourceHash(string(old)), 1)
		response.Header.Set("Content-Security-Policy", policy)
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	w := plain.open(t, server.URL, "en")
	w.scriptAtStart(t, newerScript)
	return w
}

// A player uses an old browser: signs in by the name of a player, searches, uploads a cape, wears it, and takes care of
// the account. Nothing is missing, and all texts have contrast.
func TestOldBrowser(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	w := oldBrowser(t, s.EdgeURL)
	w.arrive(t, "/signin", "Sign in")
	testenv.Equal(t, eval[string](t, w, `typeof OffscreenCanvas + typeof AbortSignal.any + typeof new URLSearchParams("a").size`), "undefinedundefinedundefined", "what an old browser has")
	w.inspect(t, "old-signin")
	w.enter(t, "demo", "demo-password", "/", "Hello, Demo")
	w.inspect(t, "old-home")
	w.arrive(t, "/library", "Library")
	w.search(t, "frog")
	w.await(t, `location.search === "?q=frog" && document.querySelectorAll(".items > li").length === 1`)
	w.inspect(t, "old-library")
	w.arrive(t, "/upload", "Upload")
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{file(t, "Stars.png", variant(artwork.NightSky(), 7))}))
	w.await(t, `document.querySelector('.upload input[value=cape]')?.checked === true`) // half as high, and without legs
	w.inspect(t, "old-upload")
	w.arrive(t, "/players", "Players")
	w.inspect(t, "old-players")
	w.arrive(t, "/account", "Account")
	w.inspect(t, "old-account")
	for page, text := range map[string]string{"/": "Newest skins", "/p/Demo": "Pictures for websites and forums", "/t/1": "Wear it"} {
		w.do(t, chromedp.Navigate(w.site+page))
		w.sees(t, text)
		w.loadAll(t)
		w.inspect(t, "old"+strings.ReplaceAll(page, "/", "-"))
	}
}

// What an input method composes is searched when it is composed.
func TestSearchWaitsForComposition(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.arrive(t, "/library", "Library")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	w.fillIn(t, `input[type="search"]`, "")
	compose := func(text string) {
		t.Helper()
		send(t, w, input.ImeSetComposition, input.ImeSetCompositionParams{Text: text, SelectionStart: int64(len(text)), SelectionEnd: int64(len(text))})
	}
	compose("fro")
	compose("frog")
	// A search would have begun by now.
	eval[bool](t, w, `new Promise((done) => setTimeout(done, 600, true))`)
	testenv.Equal(t, eval[string](t, w, `location.search`), "", "the search while a text is composed")
	send(t, w, input.InsertText, input.InsertTextParams{Text: "frog"})
	w.await(t, `location.search === "?q=frog" && document.querySelectorAll(".items > li").length === 1`)
}
