package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Announcement is the text above all pages. TermsPage is the page that new users accept.
const (
	Announcement = "announcement"
	TermsPage    = "terms"
)

// sitePageNames are the pages in the order of links to them.
var sitePageNames = []string{"rules", TermsPage, "privacy"}

// titles are the titles of pages whose text begins with none, by language.
var titles = map[string]map[string]string{
	"rules":      {"en": "Rules", "zh": "规则"},
	TermsPage:    {"en": "Terms", "zh": "条款"},
	"privacy":    {"en": "Privacy", "zh": "隐私"},
	Announcement: {"en": "Announcement", "zh": "公告"},
}

// SitePage is a text of the operator in a language.
type SitePage struct {
	Name     string
	Language string // as en
	Title    string
	HTML     string // sanitized, without scripts
}

// SiteTexts are the texts of the operator at one time. They never change. A nil *SiteTexts has none.
type SiteTexts struct {
	pages        map[string]map[string]SitePage // by name and language
	termsVersion string
}

// TermsVersion returns the digest of the terms in all languages, empty without terms.
func (t *SiteTexts) TermsVersion() string {
	if t == nil {
		return ""
	}
	return t.termsVersion
}

// Languages returns the languages of a page, English first.
func (t *SiteTexts) Languages(name string) []string {
	if t == nil {
		return nil
	}
	languages := slices.Sorted(maps.Keys(t.pages[name]))
	if i := slices.Index(languages, "en"); i > 0 {
		languages = slices.Insert(slices.Delete(languages, i, i+1), 0, "en")
	}
	return languages
}

// AllLanguages returns English, and the other languages that a page has.
func (t *SiteTexts) AllLanguages() []string {
	languages := map[string]bool{}
	if t != nil {
		for _, page := range t.pages {
			for language := range page {
				languages[language] = true
			}
		}
	}
	delete(languages, "en")
	return append([]string{"en"}, slices.Sorted(maps.Keys(languages))...)
}

// Page returns a page in a language, or else in the first one that it has. The announcement is one, too.
func (t *SiteTexts) Page(name, language string) (SitePage, bool) {
	languages := t.Languages(name)
	if len(languages) == 0 {
		return SitePage{}, false
	}
	if !slices.Contains(languages, language) {
		language = languages[0]
	}
	return t.pages[name][language], true
}

// Pages returns the pages to link to, in a language: not the announcement.
func (t *SiteTexts) Pages(language string) []SitePage {
	var pages []SitePage
	for _, name := range sitePageNames {
		if page, ok := t.Page(name, language); ok {
			pages = append(pages, page)
		}
	}
	return pages
}

// checkConsent returns an Invalid fault unless a new user has accepted the present terms, if there are any.
func (t *SiteTexts) checkConsent(version string) error {
	switch {
	case t.TermsVersion() == version || t.TermsVersion() == "":
		return nil
	case version == "":
		return fault.Field("terms_version", "Please read the terms of this site, and accept them.")
	default:
		return fault.Field("terms_version", "The terms of this site have changed. Please read them, and accept them again.")
	}
}

// SitePages reads the texts of the operator from a directory of Markdown files, as rules.md and rules.zh.md. A nil
// *SitePages belongs to a site without them.
type SitePages struct {
	dir   string
	log   *slog.Logger
	texts atomic.Pointer[SiteTexts]

	// Only the constructor and Run use the rest.
	files    map[string]siteFile
	warnings map[string]string // the last one of each file
}

// siteFile is a file as it was read last.
type siteFile struct {
	modified time.Time
	size     int64
	digest   [sha256.Size]byte
	page     SitePage // without HTML if the file is empty
}

// pageFile matches the name of a page's file.
var pageFile = regexp.MustCompile(`^(rules|terms|privacy|announcement)(?:\.([a-z]{2,3}))?\.md$`)

const (
	pagesInterval   = 10 * time.Second
	maxSitePage     = 256 << 10 // bytes
	maxAnnouncement = 4 << 10   // bytes; all pages of the console have it
)

// NewSitePages returns the texts in a directory, nil without one. Its error begins with the name of the setting.
func NewSitePages(dir string, log *slog.Logger) (*SitePages, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // see above
	}
	p := &SitePages{dir: dir, log: log, files: map[string]siteFile{}, warnings: map[string]string{}}
	if err := p.Refresh(context.Background()); err != nil {
		return nil, config.Errorf("PAGES", "is %q, a directory that cannot be read: %w", dir, errors.Unwrap(err))
	}
	return p, nil
}

// Texts returns the present texts, and waits for no file.
func (p *SitePages) Texts() *SiteTexts {
	if p == nil {
		return nil
	}
	return p.texts.Load()
}

// Run looks for changed files until ctx ends.
func (p *SitePages) Run(ctx context.Context) {
	if p == nil {
		return
	}
	ticker := time.NewTicker(pagesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.Refresh(ctx); err != nil {
			p.warn(ctx, p.dir, "the directory cannot be read: "+err.Error())
		}
	}
}

// Refresh reads the files whose time or size is another one. A page whose file is missing or wrong stays as it was.
func (p *SitePages) Refresh(ctx context.Context) error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	delete(p.warnings, p.dir)
	present := map[string]bool{}
	hasChanged := p.texts.Load() == nil
	for _, entry := range entries {
		name := entry.Name()
		if filepath.Ext(name) != ".md" {
			continue
		}
		present[name] = true
		switch isNew, err := p.read(name); {
		case err != nil:
			p.warn(ctx, name, err.Error())
		default:
			delete(p.warnings, name)
			hasChanged = hasChanged || isNew
		}
	}
	for name := range p.files {
		if !present[name] {
			p.warn(ctx, name, "it is missing")
		}
	}
	if hasChanged {
		p.texts.Store(newSiteTexts(p.files))
	}
	return nil
}

// warn logs what is wrong with a file, once.
func (p *SitePages) warn(ctx context.Context, name, problem string) {
	if p.warnings[name] != problem {
		p.warnings[name] = problem
		p.log.WarnContext(ctx, "a page of the site stays as it was", "file", name, "problem", problem)
	}
}

// read reads a file if its time or size is another one, and reports whether it did.
func (p *SitePages) read(name string) (isNew bool, err error) {
	path := filepath.Join(p.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("it cannot be read: %w", errors.Unwrap(err))
	}
	known := p.files[name]
	if known.modified.Equal(info.ModTime()) && known.size == info.Size() {
		return false, nil
	}
	match := pageFile.FindStringSubmatch(name)
	if match == nil {
		return false, errors.New("its name is not one as rules.md, terms.zh.md, privacy.md or announcement.md")
	}
	most := int64(maxSitePage)
	if match[1] == Announcement {
		most = maxAnnouncement
	}
	content, err := readSmallFile(path, most)
	if err != nil {
		return false, fmt.Errorf("it %w", err)
	}
	if !utf8.Valid(content) {
		return false, errors.New("it is not valid UTF-8")
	}
	file := siteFile{modified: info.ModTime(), size: info.Size(), digest: sha256.Sum256(content), page: SitePage{Name: match[1], Language: match[2]}}
	if file.page.Language == "" {
		file.page.Language = "en"
	}
	if err := file.page.render(strings.TrimPrefix(string(content), "\ufeff")); err != nil {
		return false, err
	}
	p.files[name] = file
	return true, nil
}

// render sets the title and the HTML. A heading at the beginning is the title.
func (p *SitePage) render(text string) (err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	p.Title = titles[p.Name]["en"]
	if title, ok := titles[p.Name][p.Language]; ok {
		p.Title = title
	}
	if heading, ok := strings.CutPrefix(text, "# "); ok {
		heading, text, _ = strings.Cut(heading, "\n")
		if p.Title, err = validateName("title", heading); err != nil {
			return errors.New("its heading must have 1 to 64 characters, and no invisible ones")
		}
	}
	p.HTML, err = markdownHTML(text)
	return err
}

// newSiteTexts returns the texts in files. Of two of the same page and language, terms.en.md comes before terms.md.
func newSiteTexts(files map[string]siteFile) *SiteTexts {
	t := &SiteTexts{pages: map[string]map[string]SitePage{}}
	terms := sha256.New()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		file := files[name]
		if file.page.Title == "" {
			continue // it is empty
		}
		if t.pages[file.page.Name] == nil {
			t.pages[file.page.Name] = map[string]SitePage{}
		}
		t.pages[file.page.Name][file.page.Language] = file.page
		if file.page.Name == TermsPage {
			terms.Write(file.digest[:])
		}
	}
	if t.pages[TermsPage] != nil {
		t.termsVersion = hex.EncodeToString(terms.Sum(nil)[:8])
	}
	return t
}
