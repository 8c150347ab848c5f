package api

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// route is one of the paths that are answered here.
type route uint8

const (
	avatarOfPlayer route = iota
	avatarOfUUID
	avatarOfUser
	avatarOfTID
	avatarOfHash
	previewOfTID
	previewOfHash
	textureFile
	skinFile
	capeFile
	profile
	routeCount
)

// routeNames are the names of the routes in metrics and logs.
var routeNames = [routeCount]string{
	avatarOfPlayer: "/avatar/player/{name}",
	avatarOfUUID:   "/avatar/uuid/{uuid}",
	avatarOfUser:   "/avatar/user/{uid}",
	avatarOfTID:    "/avatar/{tid}",
	avatarOfHash:   "/avatar/hash/{hash}",
	previewOfTID:   "/preview/{tid}",
	previewOfHash:  "/preview/hash/{hash}",
	textureFile:    "/textures/{hash}",
	skinFile:       "/skin/{name}.png",
	capeFile:       "/cape/{name}.png",
	profile:        "/csl/{name}.json",
}

// target is what a path says.
type target struct {
	route  route
	value  string // the name, number or hash, not yet understood
	suffix string // .png, .webp or none, in lower case
}

// parsePath reads a path, which is decoded already. It tells only whether the
// path has the shape of a route; whether it leads to something is for later.
func parsePath(path string) (target, bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	t := target{value: rest}
	switch first {
	case "avatar":
		t.route = avatarOfTID
		if kind, value, ok := strings.Cut(rest, "/"); ok {
			t.value = value
			switch kind {
			case "player":
				t.route = avatarOfPlayer
			case "uuid":
				t.route = avatarOfUUID
			case "user":
				t.route = avatarOfUser
			case "hash":
				t.route = avatarOfHash
			default:
				return target{}, false
			}
		}
	case "preview":
		t.route = previewOfTID
		if value, ok := strings.CutPrefix(rest, "hash/"); ok {
			t.route, t.value = previewOfHash, value
		}
	case "textures":
		t.route = textureFile
	case "skin":
		t.route = skinFile
	case "cape":
		t.route = capeFile
	case "csl":
		t.route = profile
		// Mods look for the files of a profile below the place of the profile.
		if value, ok := strings.CutPrefix(rest, "textures/"); ok {
			t.route, t.value = textureFile, value
		}
	default:
		return target{}, false
	}
	ok := t.cutSuffix()
	return t, ok && t.value != "" && !strings.Contains(t.value, "/")
}

// cutSuffix takes the suffix off the value and reports whether the route has it.
func (t *target) cutSuffix() bool {
	if t.route == profile {
		value, ok := cutSuffix(t.value, ".json")
		t.value = value
		return ok
	}
	for _, suffix := range [...]string{".png", ".webp"} {
		if value, ok := cutSuffix(t.value, suffix); ok {
			t.value, t.suffix = value, suffix
			break
		}
	}
	switch t.route {
	case textureFile:
		return t.suffix != ".webp" // files are stored as PNG
	case skinFile, capeFile:
		return t.suffix == ".png"
	default:
		return true
	}
}

// cutSuffix returns a text without a suffix that is given in lower case, and reports
// whether the text has it in whatever case.
func cutSuffix(text, suffix string) (string, bool) {
	from := len(text) - len(suffix)
	if from < 0 || !equalASCIIFold(text[from:], suffix) {
		return text, false
	}
	return text[:from], true
}

// equalASCIIFold reports whether a text is a name that is given in lower case, in whatever case
// of ASCII.
func equalASCIIFold(text, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i := range len(name) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// parseRequest returns what a path and a query ask for: a NotFound fault for what can
// lead nowhere, and an Invalid one for a query that makes no sense. The key is
// appended to scratch.
func parseRequest(t target, query string, scratch []byte) (edge.Request, error) {
	key, ok := appendKey(scratch, t)
	if !ok {
		return edge.Request{}, notFound()
	}
	want := edge.Request{Key: key}
	switch t.route {
	case textureFile, skinFile, capeFile:
		want.File = true
		if t.route == capeFile {
			want.Slot = edge.CapeSlot
		}
		return want, nil
	case profile:
		return want, nil
	default:
	}

	asked := parseParameters(query)
	// CDNs tell pictures apart by their suffix, so that has the last word.
	want.Format = render.WebP
	if t.suffix == ".png" || t.suffix == "" && asked.png {
		want.Format = render.PNG
	}
	if t.route == previewOfTID || t.route == previewOfHash {
		want.Pose = render.Preview
		height, err := asked.height.intOr("height", render.DefaultHeight)
		want.Size = render.HeightOf(height)
		return want, err
	}
	want.Pose = render.Flat
	if asked.isometric {
		want.Pose = render.Isometric
	}
	size, err := asked.size.intOr("size", render.DefaultSize)
	want.Size = render.SizeOf(size)
	return want, err
}

// parameters are what a query says about a picture.
type parameters struct {
	png, isometric bool
	size, height   parameter
}

// parameter is the value of a parameter that may be given.
type parameter struct {
	value string
	given bool
}

// parseParameters reads a query. Names are understood in any case. Of parameters that are
// given several times the first counts.
func parseParameters(query string) parameters {
	var asked parameters
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		switch name = unescape(name); {
		case equalASCIIFold(name, "png"):
			asked.png = true
		case equalASCIIFold(name, "3d"):
			asked.isometric = true
		case equalASCIIFold(name, "size"):
			asked.size.set(value)
		case equalASCIIFold(name, "height"):
			asked.height.set(value)
		}
	}
	return asked
}

func (p *parameter) set(value string) {
	if !p.given {
		*p = parameter{value: unescape(value), given: true}
	}
}

// intOr returns the parameter as an integer, and otherwise if it is not given.
func (p *parameter) intOr(name string, otherwise int) (int, error) {
	if !p.given {
		return otherwise, nil
	}
	n, ok := parseInteger(p.value)
	if !ok {
		return 0, fault.Field(name, "The %s must be an integer.", name)
	}
	return int(n), nil
}

// unescape returns a part of a query as it was meant. What is escaped wrongly
// stays as it is.
func unescape(text string) string {
	if !strings.ContainsAny(text, "%+") {
		return text
	}
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// appendKey appends the key that a path leads from, and reports whether there can
// be one. It is empty for a user who cannot exist: all those have the default
// avatar.
func appendKey(dst []byte, t target) ([]byte, bool) {
	switch t.route {
	case avatarOfPlayer, skinFile, capeFile, profile:
		return edgeproto.AppendNameKey(dst, t.value), isName(t.value)
	case avatarOfUUID:
		return appendUUID(append(dst, edgeproto.UUIDPrefix...), t.value)
	case avatarOfUser:
		uid, ok := parseInteger(t.value)
		if uid <= 0 || uid == math.MaxInt64 {
			return dst, ok
		}
		return strconv.AppendInt(append(dst, edgeproto.UIDPrefix...), uid, 10), ok
	case avatarOfTID, previewOfTID:
		tid, ok := parseInteger(t.value)
		return strconv.AppendInt(append(dst, edgeproto.TIDPrefix...), tid, 10), ok && 0 < tid && tid < math.MaxInt64
	default:
		_, err := skin.ParseHash(t.value)
		return append(append(dst, edgeproto.HashPrefix...), t.value...), err == nil
	}
}

// appendUUID appends the one form in which a UUID is looked up, hyphenated and in
// lower case. It reads those with and without hyphens, in any case.
func appendUUID(dst []byte, text string) ([]byte, bool) {
	hyphenated := len(text) == 36
	if !hyphenated && len(text) != 32 {
		return dst, false
	}
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			dst = append(dst, '-')
			if hyphenated {
				if text[0] != '-' {
					return dst, false
				}
				text = text[1:]
			}
		}
		digit, ok := hexDigit(text[0])
		if !ok {
			return dst, false
		}
		dst, text = append(dst, digit), text[1:]
	}
	return dst, true
}

// hexDigit returns a hexadecimal digit in lower case.
func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9' || 'a' <= c && c <= 'f':
		return c, true
	case 'A' <= c && c <= 'F':
		return c + 'a' - 'A', true
	default:
		return 0, false
	}
}

// maxName bounds the bytes of a name that core is asked about. Site operators
// choose which names there are, but not such.
const maxName = 128

// isName reports whether a text could be a player's name.
func isName(text string) bool {
	return len(text) <= maxName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
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
