package console_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// skinViewer is a script that modules load when a page shows a figure.
const skinViewer = "vendor/skinview3d.js"

// Every module is imported, and every import is a module.
func TestModules(t *testing.T) {
	t.Parallel()
	reached, queue := map[string]bool{"app/main.js": true, skinViewer: true}, []string{"app/main.js"}
	for _, language := range console.Languages() { // which is imported by its name
		reached[wordsName(language)] = true
		queue = append(queue, wordsName(language))
	}
	for ; len(queue) > 0; queue = queue[1:] {
		static, dynamic, err := console.ImportsOf(queue[0])
		testenv.Is(t, err, nil, "%s", queue[0])
		for _, name := range slices.Concat(static, dynamic) {
			if !reached[name] {
				reached[name] = true
				queue = append(queue, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(console.Modules())) {
		testenv.Check(t, !strings.HasSuffix(name, ".js") || reached[name], "no module imports %s", name)
	}
}

const (
	maxModules = 18
	maxBytes   = 65_000
)

// A page needs few modules before it can be used, and few bytes.
func TestFirstPage(t *testing.T) {
	t.Parallel()
	packed := func(content []byte) int {
		return len(fasthttp.AppendGzipBytesLevel(nil, content, fasthttp.CompressBestCompression))
	}
	for _, page := range []string{"app/pages/signin.js", "app/pages/home.js"} {
		for _, language := range console.Languages() {
			loaded := map[string]bool{}
			for _, entry := range []string{"app/main.js", wordsName(language), page} {
				modules := testenv.Must(console.StaticImports(entry))(t)
				for _, name := range modules {
					loaded[name] = true
				}
			}
			bytes := packed(console.Modules()["app/style.css"])
			for name := range loaded {
				bytes += packed(console.Modules()[name])
			}
			t.Logf("%s in %s: %d modules, %d bytes", page, language, len(loaded), bytes)
			all := slices.Sorted(maps.Keys(loaded))
			testenv.Check(t, len(all) <= maxModules, "%s needs %d modules, %v; want %d at most", page, len(all), all, maxModules)
			testenv.Check(t, bytes <= maxBytes, "%s takes %d bytes; want %d at most", page, bytes, maxBytes)
			testenv.Check(t, !loaded[skinViewer], "%s loads the viewer", page)
		}
	}
}

var (
	wordKey  = regexp.MustCompile(`(?m)^  "([a-zA-Z]+\.[a-zA-Z]+)": `)
	usedWord = regexp.MustCompile(`"([a-z]+\.[a-zA-Z]+)"`)
	wordCall = regexp.MustCompile(`\bt\(([^)]*)`)
	wordHole = regexp.MustCompile(`\{(\w+)\}`)
)

// wordsName returns the file with the words of a language.
func wordsName(language string) string { return "app/words/" + language + ".js" }

// wordsOf returns the words of a language, as they are written, by their keys.
func wordsOf(t *testing.T, language string) map[string]string {
	t.Helper()
	content := string(console.Modules()[wordsName(language)])
	words, matches := map[string]string{}, wordKey.FindAllStringSubmatchIndex(content, -1)
	for i, match := range matches {
		end := len(content)
		if i+1 < len(matches) {
			end = matches[i+1][0]
		}
		key := content[match[2]:match[3]]
		_, ok := words[key]
		testenv.Check(t, !ok, "%s has %s twice", language, key)
		words[key] = strings.TrimSpace(content[match[1]:end])
	}
	if len(words) == 0 {
		t.Fatalf("%s has no words", language)
	}
	return words
}

// Every word that is used exists in every language with the same values in it, and every word is used. A new
// language is a file: what it lacks is printed as it stands in the file of English.
func TestWords(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for name, content := range console.Modules() {
		if !strings.HasPrefix(name, "app/") || strings.HasPrefix(name, "app/words/") || !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, call := range wordCall.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(call[1], "`") {
				t.Errorf("%s builds the key of a word: t(%s)", name, call[1])
			}
		}
		for _, match := range usedWord.FindAllStringSubmatch(string(content), -1) {
			if !strings.HasPrefix(match[1], "veneer.") { // in localStorage
				used[match[1]] = true
			}
		}
	}
	english := wordsOf(t, "en")
	holes := func(text string) string {
		found := wordHole.FindAllString(text, -1)
		slices.Sort(found)
		return strings.Join(slices.Compact(found), " ")
	}
	for _, language := range console.Languages() {
		words := wordsOf(t, language)
		for _, key := range slices.Sorted(maps.Keys(used)) {
			testenv.Check(t, words[key] != "", "%s.js lacks\n  %q: %s", language, key, english[key])
		}
		for key, text := range words {
			testenv.Check(t, used[key], "%s has %s, which is not used", language, key)
			if got, want := holes(text), holes(english[key]); got != want && !strings.Contains(text, "other:") {
				t.Errorf("%s has the values %q in %s; want %q", language, got, key, want)
			}
		}
	}
}

// No page sets a style or a handler in HTML, or makes HTML of text: the policy would refuse it.
func TestNoInlineCode(t *testing.T) {
	t.Parallel()
	for name, content := range console.Modules() {
		if !strings.HasPrefix(name, "app/") {
			continue
		}
		for _, forbidden := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", "dangerouslySet", "sessionStorage", "document.cookie"} {
			testenv.Check(t, !strings.Contains(string(content), forbidden), "%s has %q", name, forbidden)
		}
	}
}
