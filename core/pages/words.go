package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

//go:embed words/*.json
var wordFiles embed.FS

// language has the texts of the pages.
type language struct {
	Code  string // as in ?lang=
	Tag   string // BCP 47
	words map[string]string
}

// languages are all languages. A request that accepts none of them gets the first. A further language is a line here, and a file.
var languages = []*language{newLanguage("en", "en"), newLanguage("zh", "zh-Hans")}

func newLanguage(code, tag string) *language {
	content, err := wordFiles.ReadFile("words/" + code + ".json")
	l := &language{Code: code, Tag: tag}
	if err == nil {
		err = json.Unmarshal(content, &l.words)
	}
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return l
}

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
	codes := make([]string, len(languages))
	for i, l := range languages {
		codes[i] = l.Code
	}
	return languages[slices.Index(codes, httpserver.Language(rc, codes...))]
}
