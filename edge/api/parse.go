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

// route is a path pattern of a picture, a file or a profile.
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

// target is a parsed path.
type target struct {
	route  route
	value  string // the name, number or hash, not yet validated
	suffix string // .png, .webp or none, in lower case
}

// parsePath parses a percent-decoded path and reports whether it has the shape of a route. It
// does not validate the value.
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
		// Mods request the files of a profile relative to the URL of the profile.
		if value, ok := strings.CutPrefix(rest, "textures/"); ok {
			t.route, t.value = textureFile, value
		}
	default:
		return target{}, false
	}
	ok := t.cutSuffix()
	return t, ok && t.value != "" && !strings.Contains(t.value, "/")
}

// cutSuffix moves the suffix from the value to its own field and reports whether the route
// allows it.
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

// cutSuffix returns a string without a suffix of any case, and reports whether it had it. The
// suffix is given in lower case.
func cutSuffix(text, suffix string) (string, bool) {
	from := len(text) - len(suffix)
	if from < 0 || !equalASCIIFold(text[from:], suffix) {
		return text, false
	}
	return text[:from], true
}

// equalASCIIFold reports whether a string equals a name but for the case of ASCII letters. The
// name is given in lower case.
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

// parseRequest returns the request that a path and a query mean. It returns a NotFound fault
// for a value that cannot exist, and an Invalid one for an invalid query. The key is appended
// to scratch, and valid as long as that is not overwritten.
func parseRequest(t target, query string, scratch []byte) (edge.Request, error) {
	key, ok := appendKey(scratch, t)
	if !ok {
		return edge.Request{}, notFound()
	}
	req := edge.Request{Key: edgeproto.Key(unsafeString(key))}
	switch t.route {
	case textureFile, skinFile, capeFile:
		req.Kind = edge.KindFile
		if t.route == capeFile {
			req.Slot = edge.CapeSlot
		}
		return req, nil
	case profile:
		req.Kind = edge.KindProfile
		return req, nil
	default:
	}

	params := parseParameters(query)
	// CDNs choose the content type by the suffix, so it overrides the query.
	req.Format = render.WebP
	if t.suffix == ".png" || t.suffix == "" && params.png {
		req.Format = render.PNG
	}
	if t.route == previewOfTID || t.route == previewOfHash {
		req.Pose = render.Preview
		height, err := params.height.intOr("height", render.DefaultHeight)
		req.Size = render.HeightOf(height)
		return req, err
	}
	req.Pose = render.Flat
	if params.isometric {
		req.Pose = render.Isometric
	}
	size, err := params.size.intOr("size", render.DefaultSize)
	req.Size = render.SizeOf(size)
	return req, err
}

// parameters are the query parameters of a picture.
type parameters struct {
	png, isometric bool
	size, height   parameter
}

// parameter is an optional parameter.
type parameter struct {
	value string
	given bool
}

// parseParameters parses a query. Names may be in any case. The first of repeated parameters
// counts.
func parseParameters(query string) parameters {
	var params parameters
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		switch name = unescape(name); {
		case equalASCIIFold(name, "png"):
			params.png = true
		case equalASCIIFold(name, "3d"):
			params.isometric = true
		case equalASCIIFold(name, "size"):
			params.size.set(value)
		case equalASCIIFold(name, "height"):
			params.height.set(value)
		}
	}
	return params
}

func (p *parameter) set(value string) {
	if !p.given {
		*p = parameter{value: unescape(value), given: true}
	}
}

// intOr returns the parameter as an integer, and a default if it is not given.
func (p *parameter) intOr(name string, def int) (int, error) {
	if !p.given {
		return def, nil
	}
	n, ok := parseInteger(p.value)
	if !ok {
		return 0, fault.Field(name, "The %s must be an integer.", name)
	}
	return int(n), nil
}

// unescape decodes a part of a query. It returns invalid encodings as they are.
func unescape(text string) string {
	if !strings.ContainsAny(text, "%+") {
		return text
	}
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

// appendKey appends the key of a path and reports whether the path is valid. The key is empty
// for uids that cannot exist, which have the default avatar.
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

// appendUUID appends the canonical form of a UUID: hyphenated and in lower case. It accepts
// any case, with and without hyphens.
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

// maxName bounds the bytes of a name that is looked up. Operators configure which names are
// valid, but none of them is longer.
const maxName = 128

// isName reports whether a string could be a player's name.
func isName(text string) bool {
	return len(text) <= maxName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// parseInteger parses a decimal integer of any length. One beyond the range of int64 is
// clamped.
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
