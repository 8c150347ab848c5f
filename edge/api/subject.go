package api

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/skin"
)

// way is by what a picture is asked for.
type way uint8

const (
	byName way = iota
	byUser
	byTID
	byHash
)

// subject is what the path of a picture says.
type subject struct {
	preview bool
	way     way
	value   string // the name, number or hash, not yet understood
	suffix  string // .png, .webp or none
}

// subjectOf reads a path, which is decoded already. It tells only whether the
// path has the shape of a picture's; whether it leads to one is for later.
func subjectOf(path string) (subject, bool) {
	var about subject
	rest, isAvatar := strings.CutPrefix(path, "/avatar/")
	if !isAvatar {
		if rest, about.preview = strings.CutPrefix(path, "/preview/"); !about.preview {
			return subject{}, false
		}
	}
	about.way = byTID
	if value, ok := strings.CutPrefix(rest, "hash/"); ok {
		rest, about.way = value, byHash
	} else if value, ok := strings.CutPrefix(rest, "player/"); ok && isAvatar {
		rest, about.way = value, byName
	} else if value, ok := strings.CutPrefix(rest, "user/"); ok && isAvatar {
		rest, about.way = value, byUser
	}
	for _, suffix := range []string{".png", ".webp"} {
		if value, ok := strings.CutSuffix(rest, suffix); ok {
			rest, about.suffix = value, suffix
			break
		}
	}
	about.value = rest
	return about, rest != "" && !strings.Contains(rest, "/")
}

// wantOf returns the picture that a path and a query ask for: a NotFound fault
// for what can lead nowhere, and an Invalid one for a query that makes no sense.
func wantOf(about subject, query *fasthttp.Args) (edge.Want, error) {
	key, err := keyOf(about)
	if err != nil {
		return edge.Want{}, err
	}
	want := edge.Want{Key: key, Format: render.WebP}
	// CDNs tell pictures apart by their suffix, so that has the last word.
	if about.suffix == ".png" || about.suffix == "" && query.Has("png") {
		want.Format = render.PNG
	}

	if about.preview {
		want.Pose = render.Preview
		height, err := integer(query, "height", render.DefaultHeight)
		want.Size = render.HeightOf(height)
		return want, err
	}
	want.Pose = render.Flat
	if query.Has("3d") {
		want.Pose = render.Isometric
	}
	size, err := integer(query, "size", render.DefaultSize)
	want.Size = render.SizeOf(size)
	return want, err
}

// keyOf returns the key that a path leads from. It is empty for a user who
// cannot exist: all those have the default avatar.
func keyOf(about subject) (mapping.Key, error) {
	switch about.way {
	case byName:
		if isName(about.value) {
			return mapping.Name(about.value), nil
		}
	case byUser:
		if uid, ok := parseInteger(about.value); ok {
			if uid <= 0 || uid == math.MaxInt64 {
				return "", nil
			}
			return mapping.UID(uid), nil
		}
	case byHash:
		if hash, err := skin.ParseHash(about.value); err == nil {
			return mapping.Hash(hash), nil
		}
	case byTID:
		if tid, ok := parseInteger(about.value); ok && tid > 0 && tid < math.MaxInt64 {
			return mapping.TID(tid), nil
		}
	}
	return "", notFound()
}

// maxName bounds the bytes of a name that core is asked about. Site operators
// choose which names there are, but not such.
const maxName = 128

// isName reports whether a text could be a player's name.
func isName(text string) bool {
	return len(text) <= maxName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// integer returns the integer that a query holds under a name, and otherwise if
// it holds none. Of several the first counts.
func integer(query *fasthttp.Args, name string, otherwise int) (int, error) {
	if !query.Has(name) {
		return otherwise, nil
	}
	n, ok := parseInteger(string(query.Peek(name)))
	if !ok {
		return 0, fault.Field(name, "The %s must be an integer.", name)
	}
	return int(n), nil
}

// parseInteger reads a decimal integer of any length. One beyond the range of
// int64 becomes the last one within.
func parseInteger(text string) (int64, bool) {
	digits := strings.TrimLeft(text, "+-")
	if digits == "" || len(text)-len(digits) > 1 {
		return 0, false
	}
	negative := text[0] == '-'
	var n int64
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := int64(c - '0')
		if n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64
			continue
		}
		n = 10*n + digit
	}
	if negative {
		return -n, true
	}
	return n, true
}
