package httpserver

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Page is a small HTML document for browsers. It loads no other resource, and is rendered
// once, by NewPage.
type Page struct{ body []byte }

// PageText is the content of a page.
type PageText struct {
	Title      string
	Paragraphs []string
	Links      []Link
}

// Link is a hyperlink.
type Link struct{ Path, Text string }

// PageColours are the colours of pages, as CSS variables. They follow the system's dark or light mode.
const PageColours = `:root{color-scheme:light dark;--back:#fafaf7;--text:#23241f;--quiet:#5d6057;--link:#1f6b3a;--line:#d9dbd2}` +
	`@media (prefers-color-scheme:dark){:root{--back:#181a17;--text:#ecede6;--quiet:#a5a99c;--link:#86d19a;--line:#3a3d36}}`

const pageStyle = PageColours +
	`body{margin:0;background:var(--back);color:var(--text);font:1.125rem/1.6 system-ui,sans-serif}` +
	`main{max-width:36rem;margin:0 auto;padding:15vh 1.5rem 3rem}` +
	`h1{margin:0 0 1rem;font-size:2rem;line-height:1.2}` +
	`p{margin:0 0 1rem;color:var(--quiet);overflow-wrap:anywhere}` +
	`ul{margin:2rem 0 0;padding:1rem 0 0;border-top:1px solid var(--line);list-style:none}` +
	`a{display:inline-block;padding:.25rem 0;color:var(--link)}`

// pageTemplate has an empty icon, so that browsers do not request /favicon.ico.
var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<link rel="icon" href="data:,">
<style>` + pageStyle + `</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{range .Paragraphs}}<p>{{.}}</p>
{{end}}{{if .Links}}<ul>
{{range .Links}}<li><a href="{{.Path}}">{{.Text}}</a></li>
{{end}}</ul>
{{end}}</main>
</body>
</html>
`))

// pagePolicy allows the page's style and its empty icon only.
var pagePolicy = "default-src 'none'; style-src " + SourceHash(pageStyle) + "; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// NewPage renders a page.
func NewPage(text PageText) *Page {
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, text); err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return &Page{body.Bytes()}
}

// NotFoundPage returns the page for 404 responses.
func NotFoundPage(links ...Link) *Page {
	return NewPage(PageText{Title: "Not found", Paragraphs: []string{"There is nothing at this address."}, Links: links})
}

// Write answers with the page.
func (p *Page) Write(rc *fasthttp.RequestCtx, status int) {
	rc.SetStatusCode(status)
	rc.SetContentType("text/html; charset=utf-8")
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, pagePolicy)
	rc.Response.SetBodyRaw(p.body) // which never changes
}

// WriteNotFound answers 404: with the page if the client prefers HTML to JSON, as browsers
// do, else by returning a NotFound fault.
func (p *Page) WriteNotFound(rc *fasthttp.RequestCtx) error {
	if !PrefersHTML(rc) {
		return fault.New(fault.NotFound, "There is nothing at this address.")
	}
	errorResponses[fault.NotFound].Inc()
	p.Write(rc, fasthttp.StatusNotFound)
	return nil
}

// PrefersHTML reports whether a client prefers HTML to JSON (RFC 9110, section 12.5.1). It
// adds Accept to Vary, as the response depends on it.
func PrefersHTML(rc *fasthttp.RequestCtx) bool {
	rc.Response.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAccept)
	html, json := quality{}, quality{}
	for _, line := range rc.Request.Header.PeekAll(fasthttp.HeaderAccept) {
		for part := range strings.SplitSeq(string(line), ",") {
			kind, parameters, _ := strings.Cut(part, ";")
			kind = strings.ToLower(strings.TrimSpace(kind))
			html.update(kind, parameters, "text/html", "text/*")
			json.update(kind, parameters, "application/json", "application/*")
		}
	}
	return html.value > json.value
}

// quality is the q value of a media type, from the most specific range that matches it.
type quality struct {
	value       float64
	specificity int // 3: the type itself, 2: its family, 1: any type, 0: no match
}

// update applies a range and its parameters.
func (q *quality) update(kind, parameters, itself, family string) {
	specificity := map[string]int{itself: 3, family: 2, "*/*": 1}[kind]
	if specificity <= q.specificity {
		return
	}
	q.specificity, q.value = specificity, parseQuality(parameters)
}

// parseQuality returns the q value in the parameters of a range; 1 without one.
func parseQuality(parameters string) float64 {
	value := 1.0
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, text, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			value, _ = strconv.ParseFloat(strings.TrimSpace(text), 64) // 0 if it is not a number
		}
	}
	return value
}

// Language returns which of the offered languages, as en and zh, a response should have: the one of the parameter lang, else
// the one that Accept-Language prefers (RFC 9110, section 12.5.4), else the first one. It adds Accept-Language to Vary.
func Language(rc *fasthttp.RequestCtx, offered ...string) string {
	if len(offered) > 1 {
		rc.Response.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptLanguage)
	}
	if chosen := string(rc.QueryArgs().Peek("lang")); slices.Contains(offered, chosen) {
		return chosen
	}
	best, most := offered[0], 0.0
	for _, line := range rc.Request.Header.PeekAll(fasthttp.HeaderAcceptLanguage) {
		for part := range strings.SplitSeq(string(line), ",") {
			tag, parameters, _ := strings.Cut(part, ";")
			primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
			if q := parseQuality(parameters); q > most && slices.Contains(offered, primary) {
				best, most = primary, q
			}
		}
	}
	return best
}

// robots allows crawlers everything but the API, which is for programs.
const robots = "User-agent: *\nDisallow: /api/\nAllow: /api/docs\n"

// robotsOfHidden is of a site that is not to be listed. Crawlers must read its pages, as these say so, and those that
// make previews of shared links also the cards.
const robotsOfHidden = "User-agent: *\nDisallow: /\nAllow: /$\nAllow: /p/\nAllow: /t/\nAllow: /site/\nAllow: /card/\n"

// Robots answers GET /robots.txt (RFC 9309).
func Robots(rc *fasthttp.RequestCtx, isHidden bool) {
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	rc.SetContentType("text/plain; charset=utf-8")
	rc.SetBodyString(robots)
	if isHidden {
		rc.SetBodyString(robotsOfHidden)
	}
}
