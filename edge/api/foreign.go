package api

import (
	"math"
	"strconv"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// foreignTable are the addresses of other services by their prefix.
var foreignTable = func() map[string]*edge.Foreign {
	table := map[string]*edge.Foreign{}
	for _, address := range edge.Foreigns {
		table[address.Prefix] = address
	}
	return table
}()

// foreignPath is what the path of an address of another service has beside the subject.
type foreignPath struct {
	address            *edge.Foreign // nil for addresses of views
	size               string        // a number, empty if there is none
	left, right, noHat bool
}

// foreignRoutes are the routes of such addresses, which share the names of metrics.
var foreignRoutes = func() (all [edge.SubjectCount]*route) {
	for subject := range all {
		class := edge.CachePlayer
		if !edge.Subject(subject).IsPlayer() {
			class = edge.CacheTexture
		}
		all[subject] = &route{Route: edge.Route{Subject: edge.Subject(subject), CacheClass: class}, number: foreignNumber}
	}
	return all
}()

// foreignSuffixes are the suffixes that such addresses may have. All but .webp mean PNG: clients of
// other services are plugins in Java, which reads no WebP.
var foreignSuffixes = [...]string{".png", ".webp", ".svg", ".jpg", ".jpeg", ".gif", ".jxl"}

// parseForeign parses a percent-decoded path of another service, and reports whether it is one.
//
// After the prefix come the subject, a size on either side of it, and words that turn the head or
// take its hat off, in any order after the first of these. Of two numbers the first is the subject,
// unless the address has the size first. A subject may have player, uuid, user or hash before it.
func parseForeign(path string) (target, bool) {
	address, rest := cutForeign(path)
	if address == nil {
		return target{}, false
	}
	t := target{foreign: foreignPath{address: address}}
	subject, isNamed := namedSubject(&rest)
	if strings.IndexByte(rest, '.') >= 0 {
		rest, t.suffix = cutForeignSuffix(rest, isNamed && subject == edge.ByName)
	}
	values, count, ok := t.foreign.cutWords(rest)
	if !ok || !t.setValues(values[:count], isNamed) {
		return target{}, false
	}
	if !isNamed {
		if _, isWord := subjectByWord(t.value); isWord {
			return target{}, false
		}
		subject = subjectOf(t.value)
	}
	t.route = foreignRoutes[subject]
	return t, true
}

// cutForeignSuffix cuts a suffix off a path, and returns it if it is a known one. It cuts others off the last
// segment only if that is no name then: numbers, UUIDs and hashes have no full stop.
func cutForeignSuffix(path string, isName bool) (rest, suffix string) {
	for _, suffix := range foreignSuffixes {
		if rest, ok := cutSuffix(path, suffix); ok {
			return rest, suffix
		}
	}
	start := strings.LastIndexByte(path, '/') + 1
	if dot := strings.LastIndexByte(path, '.'); !isName && dot > start && subjectOf(path[start:dot]) != edge.ByName {
		return path[:dot], ""
	}
	return path, ""
}

// cutForeign returns the address with the longest prefix of a path, nil if there is none, and what comes
// after the prefix.
func cutForeign(path string) (address *edge.Foreign, rest string) {
	first := strings.IndexByte(path[min(1, len(path)):], '/') + 2
	if first < 2 {
		return nil, ""
	}
	if second := strings.IndexByte(path[first:], '/') + 1; second > 0 {
		if longer := foreignTable[path[:first+second]]; longer != nil {
			return longer, path[first+second:]
		}
	}
	return foreignTable[path[:first]], path[first:]
}

// cutWords takes the words from the segments of a path, and returns the one or two other segments. It
// reports false for more of them or an empty one.
func (f *foreignPath) cutWords(path string) (values [2]string, count int, ok bool) {
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		isWord := count > 0
		switch {
		case isWord && segment == "left":
			f.left = true
		case isWord && segment == "right":
			f.right = true
		case isWord && segment == "nohelm":
			f.noHat = true
		case isWord && segment == "hat":
		case count == len(values) || segment == "":
			return values, count, false
		default:
			values[count] = segment
			count++
		}
	}
	return values, count, true
}

// setValues sets the value and the size from the segments of a path that are no words. It reports false
// if there are two, of which none is a size, or for a file.
func (t *target) setValues(values []string, isNamed bool) bool {
	t.value = values[0]
	if len(values) == 1 {
		return true
	}
	size, ok := 1, isSize(values[1])
	if isSize(values[0]) && !isNamed && (!ok || t.foreign.address.IsSizeFirst) {
		size, ok = 0, true
	}
	t.value, t.foreign.size = values[1-size], values[size]
	return ok && t.foreign.address.Kind == edge.KindPicture
}

// namedSubject cuts the word off the beginning of a path that says what the next segment is.
func namedSubject(path *string) (edge.Subject, bool) {
	word, rest, _ := strings.Cut(*path, "/")
	subject, ok := subjectByWord(word)
	if !ok || rest == "" {
		return 0, false
	}
	*path = rest
	return subject, true
}

// subjectByWord returns the subject that a word in a path says the next segment is. A player of such a
// name is reached after the word player.
func subjectByWord(word string) (edge.Subject, bool) {
	switch word {
	case "player":
		return edge.ByName, true
	case "uuid":
		return edge.ByUUID, true
	case "user":
		return edge.ByUID, true
	case "hash":
		return edge.ByHash, true
	default:
		return 0, false
	}
}

// subjectOf returns what a value is that no word describes: a UUID, a hash, a number of digits, or
// else a name. Of 36 bytes the hyphens alone make a UUID, since appendKey checks the digits.
func subjectOf(value string) edge.Subject {
	const uuidDigits, hyphenatedUUID, hashDigits = 32, 36, 2 * len(skin.Hash{})
	switch n := len(value); {
	case n == hyphenatedUUID && value[8] == '-' && value[13] == '-' && value[18] == '-' && value[23] == '-',
		n == uuidDigits && isHexadecimal(value):
		return edge.ByUUID
	case n == hashDigits && isHexadecimal(value):
		return edge.ByHash
	case isDigits(value):
		return edge.ByTID
	default:
		return edge.ByName
	}
}

// isHexadecimal reports whether a text consists of hexadecimal digits.
func isHexadecimal(text string) bool {
	for i := range len(text) {
		if _, ok := hexDigit(text[i]); !ok {
			return false
		}
	}
	return true
}

// isDigits reports whether a text consists of digits.
func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// isSize reports whether a segment is a size: a number of at most four digits.
func isSize(segment string) bool {
	const maxDigits = 4
	return len(segment) <= maxDigits && isDigits(segment)
}

// maxTIDDigits is the length of the longest number of a texture.
const maxTIDDigits = 19

// parseForeignRequest returns the request that an address of another service means. It returns a
// NotFound fault for a subject that cannot exist. It ignores unknown parameters and values, and
// brings sizes into the bounds of the mode.
func parseForeignRequest(t target, query string, scratch []byte) (edge.Request, error) {
	address := t.foreign.address
	key, ok := appendKey(scratch, t)
	if !ok || t.route.Subject == edge.ByTID && len(t.value) > maxTIDDigits {
		return edge.Request{}, notFound()
	}
	req := edge.Request{Key: edgeproto.Key(unsafeString(key)), Kind: address.Kind, Slot: address.Slot}
	if address.Kind == edge.KindFile {
		return req, nil
	}

	params := parseForeignParameters(query)
	req.Mode, req.Format = address.Mode, render.PNG
	if t.suffix == ".webp" {
		req.Format = render.WebP
	}
	req.Size, req.Exact = req.Mode.ExactOf(params.sizeOf(&t.foreign))
	if req.Mode.ShowsWorn() && !params.noCape {
		req.Wear = render.WearCape
	}
	omit := params.omit
	if t.foreign.noHat {
		omit |= render.OmitHat
	}
	if params.noOverlay || address.IsBare && !params.overlay {
		omit |= render.OmitHat | render.OmitLayers
	}
	req.Omit = omit & req.Mode.Omissible()
	if req.Mode.HasAttitudes() {
		req.Attitude = params.attitude(req.Mode, &t.foreign)
	}
	req.Default = params.byDefault
	if req.Mode != render.Flat && req.Mode != render.Isometric { // the head is the same for both models
		req.Model = params.model
	}
	return req, nil
}

// foreignParameters are the parameters of other services' pictures.
type foreignParameters struct {
	size, width, height, scale int // 0: not given
	yaw                        float64
	overlay, noOverlay         bool
	noCape                     bool
	omit                       render.Omissions
	model                      skin.Type
	byDefault                  edge.Default
	hasYaw, hasDefault         bool
}

func parseForeignParameters(query string) foreignParameters {
	params := foreignParameters{byDefault: edge.DefaultAvatar}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		params.set(unescape(name), unescape(value))
	}
	return params
}

// set sets a parameter. The first valid one of repeated ones counts; those that leave something out add up.
func (p *foreignParameters) set(name, value string) {
	switch {
	case equalASCIIFold(name, "size"):
		setOnce(&p.size, value)
	case equalASCIIFold(name, "w"), equalASCIIFold(name, "width"):
		setOnce(&p.width, value)
	case equalASCIIFold(name, "h"), equalASCIIFold(name, "height"):
		setOnce(&p.height, value)
	case equalASCIIFold(name, "scale"):
		setOnce(&p.scale, value)
	case equalASCIIFold(name, "y"), equalASCIIFold(name, "yaw"):
		if yaw, err := strconv.ParseFloat(value, 64); err == nil && math.Abs(yaw) < math.MaxInt16 && !p.hasYaw {
			p.yaw, p.hasYaw = yaw, true
		}
	case equalASCIIFold(name, "overlay"), equalASCIIFold(name, "helm"):
		if !p.overlay {
			p.overlay, p.noOverlay = true, equalASCIIFold(value, "false") || equalASCIIFold(value, "no") || value == "0"
		}
	case equalASCIIFold(name, "no"), equalASCIIFold(name, "exclude"):
		p.leaveOut(value)
	case equalASCIIFold(name, "nolayers"):
		p.omit |= render.OmitHat | render.OmitLayers
	case equalASCIIFold(name, "noshading"):
		p.omit |= render.OmitLight
	case equalASCIIFold(name, "model"):
		p.setModel(value)
	case equalASCIIFold(name, "slim"), equalASCIIFold(name, "alex"), equalASCIIFold(name, "wide"), equalASCIIFold(name, "steve"):
		p.setModel(name)
	case equalASCIIFold(name, "default"):
		p.setDefault(value)
	}
}

// leaveOut adds what a list leaves out.
func (p *foreignParameters) leaveOut(list string) {
	for list != "" {
		var name string
		name, list, _ = strings.Cut(list, ",")
		if equalASCIIFold(name, "shading") {
			name = "light"
		}
		omit, noCape, _ := parseOmissions(name)
		p.omit |= omit
		p.noCape = p.noCape || noCape
	}
}

func (p *foreignParameters) setModel(name string) {
	switch {
	case p.model != 0:
	case equalASCIIFold(name, "slim"), equalASCIIFold(name, "alex"):
		p.model = skin.Slim
	case equalASCIIFold(name, "default"), equalASCIIFold(name, "classic"), equalASCIIFold(name, "wide"), equalASCIIFold(name, "steve"):
		p.model = skin.Classic
	}
}

// setDefault sets the default avatar. Of a UUID it is the one that the game shows for it. Addresses
// of pictures elsewhere are ignored, since a redirect to any address would help phishing.
func (p *foreignParameters) setDefault(value string) {
	var scratch [36]byte
	uuid, isUUID := appendUUID(scratch[:0], value)
	byDefault, ok := parseDefault(value)
	if p.hasDefault {
		return
	}
	p.hasDefault = true
	switch {
	case ok:
		p.byDefault = byDefault
	case equalASCIIFold(value, "mhf_steve"), equalASCIIFold(value, "steve"):
		p.byDefault = edge.DefaultClassic
	case equalASCIIFold(value, "mhf_alex"), equalASCIIFold(value, "alex"), isUUID && edge.DefaultModel(unsafeString(uuid)) == skin.Slim:
		p.byDefault = edge.DefaultSlim
	case isUUID:
		p.byDefault = edge.DefaultClassic
	default:
		p.hasDefault = false
	}
}

// sizeOf returns the side or the height in pixels.
func (p *foreignParameters) sizeOf(path *foreignPath) int {
	address := path.address
	size := p.size
	if path.size != "" {
		size = max(1, positiveInteger(path.size))
	}
	switch {
	case size > 0 && address.Measure == edge.Width:
		return 2 * size
	case size > 0:
		return size
	case p.width > 0 && address.Measure != edge.Side:
		return 2 * p.width
	case p.width > 0:
		return p.width
	case p.height > 0:
		return p.height
	case p.scale > 0 && address.Scale > 0:
		return p.scale * address.Scale
	default:
		return address.DefaultSize
	}
}

// attitude returns the attitude of a head or a figure: left and right are where its front is, and the
// yaw is relative to its own.
func (p *foreignParameters) attitude(mode render.Mode, path *foreignPath) render.Attitude {
	const eighth, frontRight, frontLeft = 45, 1, 7
	turn, tilt := mode.DefaultAttitude()
	switch {
	case path.left:
		turn = frontLeft
	case path.right:
		turn = frontRight
	}
	turn += int(math.Round(p.yaw / eighth))
	return mode.Attitude((turn%render.TurnCount+render.TurnCount)%render.TurnCount, tilt)
}

// setOnce sets a number to a positive integer, unless it is set.
func setOnce(number *int, value string) {
	if *number == 0 {
		*number = positiveInteger(value)
	}
}

// positiveInteger returns an integer, or 0 if a text is none or not positive. It is small enough to
// be multiplied.
func positiveInteger(text string) int {
	n, ok := parseInteger(text)
	if !ok {
		return 0
	}
	return int(min(max(n, 0), math.MaxInt16))
}
