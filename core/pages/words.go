package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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

// languageOf returns the language that a code names, or else the one that an Accept-Language header prefers
// (RFC 9110, section 12.5.4).
func languageOf(code, accepted string) *language {
	best, quality := languages[0], 0.0
	for _, l := range languages {
		if l.Code == code {
			return l
		}
		for part := range strings.SplitSeq(accepted, ",") {
			tag, parameter, _ := strings.Cut(part, ";")
			q := 1.0
			if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
				q, _ = strconv.ParseFloat(value, 64) // 0 if it is no number
			}
			primary, _, _ := strings.Cut(strings.TrimSpace(tag), "-")
			if strings.EqualFold(primary, l.Code) && q > quality {
				best, quality = l, q
			}
		}
	}
	return best
}
