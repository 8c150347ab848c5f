package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

//go:embed words/*.json
var wordFiles embed.FS

// language has the texts of the pages.
type language struct {
	Code     string // as in ?lang=
	Tag      string // BCP 47
	IsChosen bool   // by ?lang=, which links keep then
	words    map[string]string
}

// languages has a language for each file of words, English first, and codes has the codes. A request that accepts no language
// gets English.
var languages, codes = readLanguages()

func readLanguages() (all []*language, codes []string) {
	files, err := wordFiles.ReadDir("words")
	for _, file := range files {
		code := strings.TrimSuffix(file.Name(), ".json")
		var content []byte
		if content, err = wordFiles.ReadFile("words/" + file.Name()); err != nil {
			break
		}
		l := &language{Code: code}
		if err = json.Unmarshal(content, &l.words); err != nil {
			break
		}
		l.Tag = l.words["tag"]
		i := len(all)
		if code == "en" {
			i = 0
		}
		all, codes = slices.Insert(all, i, l), slices.Insert(codes, i, code)
	}
	if err != nil || codes[0] != "en" {
		panic(fmt.Sprintf("BUG: the languages are %v: %v", codes, err))
	}
	return all, codes
}

// key is the language in keys of the cache.
func (l *language) key() string { return fmt.Sprint(l.Code, l.IsChosen) }

// T returns a text, with arguments in place of its verbs.
func (l *language) T(key string, args ...any) string {
	text, ok := l.words[key]
	switch {
	case !ok:
		panic("BUG: there is no text " + key)
	case len(args) == 0:
		return text
	default:
		return fmt.Sprintf(text, args...)
	}
}

// languageOf returns the language of the response to a request.
func languageOf(rc *fasthttp.RequestCtx) *language {
	l := *languages[slices.Index(codes, httpserver.Language(rc, codes...))]
	l.IsChosen = string(rc.QueryArgs().Peek("lang")) == l.Code
	return &l
}
