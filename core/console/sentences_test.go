package console_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// sentenceSources are the files with the sentences of faults that pages may show.
var sentenceSources = []string{
	"../*.go", "../api/*.go", "../postgres/*.go", "../clientapi/*.go", "../clientapi/decode/*.go", "*.go", "../../shared/fault/*.go", "../../shared/skin/upload.go",
}

// sentencesForOthers match sentences that no page shows.
var sentencesForOthers = regexp.MustCompile(strings.Join([]string{
	`^This mail is void`,                // for the program that sends mail
	`keys are too many|^The limit must`, // for edges
	`^Invalid token|^Access token|clientToken|such profile|^Please verify your e-mail|names are too many|profiles are being signed|look-ups have found nothing|keys are being made`, // for launchers
	`^It is deleted|^Its uploader|^We looked at it`,                          // of a notification
	`^The body (is no|must be|must not be|nests|has)|^There is no such file`, // for clients that are no page
	`^Too many of your requests|^Please wait`,                                // status 429, for which pages have a sentence
	`cannot be reached at the moment`,                                        // status 503, as before
	`^This is the API`,
}, "|"))

// sentence matches the sentences of faults, as formats of Go.
var sentence = regexp.MustCompile(`^[A-Z%].* .*\.$`)

// callsWithoutFaults are calls with sentences that are no faults: of successful responses and of metrics.
var callsWithoutFaults = []string{"writeOK", "writeAccepted", "changeByID", "deleteByID", "counter"}

// faultSentences returns the sentences of faults in a file, as formats.
func faultSentences(t *testing.T, file string) (sentences []string) {
	t.Helper()
	parsed := testenv.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			var name string
			switch function := node.Fun.(type) {
			case *ast.Ident:
				name = function.Name
			case *ast.SelectorExpr:
				name = function.Sel.Name
			}
			return !slices.Contains(callsWithoutFaults, name)
		case *ast.KeyValueExpr:
			key, ok := node.Key.(*ast.Ident)
			return !ok || key.Name != "Help"
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING && sentence.MatchString(text) {
				sentences = append(sentences, text)
			}
		}
		return true
	})
	return sentences
}

var (
	translation = regexp.MustCompile(`(?m)^  ("(?:[^"\\]|\\.)*"):\s+"((?:[^"\\]|\\.)*)",$`)
	verb        = regexp.MustCompile(`%[dsqv]`)
	place       = regexp.MustCompile(`\{(\d)\}`)
)

// matches reports whether every sentence of a format is, or some are, those of another one.
func matches(format, other string) bool {
	pattern := verb.ReplaceAllString(regexp.QuoteMeta(format), ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(other)
}

// Every sentence of a fault that a page may show is translated into every language, with values that it has, and every
// translation is of such a sentence. English is theirs.
func TestSentences(t *testing.T) {
	t.Parallel()
	var sentences []string
	for _, pattern := range sentenceSources {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				sentences = append(sentences, faultSentences(t, file)...)
			}
		}
	}
	sentences = slices.DeleteFunc(sentences, sentencesForOthers.MatchString)
	// httpserver has some that pages may show.
	sentences = append(sentences, "The body is larger than the %d bytes that are accepted here.")
	slices.Sort(sentences)
	sentences = slices.Compact(sentences)
	for _, language := range console.Languages() {
		if language != "en" {
			checkTranslations(t, language, sentences)
		}
	}
}

// checkTranslations compares the sentences that a language translates with the sentences of faults.
func checkTranslations(t *testing.T, language string, sentences []string) {
	t.Helper()
	content, _, _ := strings.Cut(string(console.Modules()[wordsName(language)]), "const words")
	var translated []string
	for _, match := range translation.FindAllStringSubmatch(content, -1) {
		format := testenv.Must(strconv.Unquote(match[1]))(t)
		translated = append(translated, format)
		for _, hole := range place.FindAllStringSubmatch(match[2], -1) {
			if n, _ := strconv.Atoi(hole[1]); n < 1 || n > len(verb.FindAllString(format, -1)) {
				t.Errorf("%s.js: %q has no value %s", language, format, hole[0])
			}
		}
		testenv.Check(t, slices.ContainsFunc(sentences, func(s string) bool { return matches(s, format) }),
			"%s.js: %q is no sentence of a fault", language, format)
	}
	for _, s := range sentences {
		if !slices.ContainsFunc(translated, func(format string) bool { return format == s || matches(s, format) }) {
			t.Errorf("%s.js lacks\n  %q: \"\",", language, s)
		}
	}
}
