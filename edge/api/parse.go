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

// route is a route of a view.
type route struct {
	edge.Route
	view   *edge.View
	number int // among all routes
}

// allRoutes are the routes of all views by their number.
var allRoutes = func() (all []*route) {
	for _, view := range edge.Views {
		for _, r := range view.Routes {
			all = append(all, &route{Route: r, view: view, number: len(all)})
		}
	}
	return all
}()

// routeTable are the routes by their prefix, those of one prefix in the order of the views.
var routeTable = func() map[string][]*route {
	table := map[string][]*route{}
	for _, route := range allRoutes {
		table[route.Prefix] = append(table[route.Prefix], route)
	}
	return table
}()

// Numbers of routes that are no route of a view.
var (
	foreignNumber = len(allRoutes)
	headsNumber   = len(allRoutes) + 1
	spriteNumber  = len(allRoutes) + 2
)

// routeNames are the names of all routes by their number.
var routeNames = func() (names []string) {
	for _, route := range allRoutes {
		names = append(names, route.view.RouteName(route.Route))
	}
	return append(names, "foreign", headsPath, spriteRoot+"{view}")
}()

// target is a parsed path.
type target struct {
	route   *route
	value   string      // the name, number or hash, not yet validated
	suffix  string      // as in the view, without regard to case
	foreign foreignPath // of an address of another service, of which the route has no view
}

// parsePath parses a percent-decoded path, and a query as far as it has the value, and reports
// whether they have the shape of a route. It does not validate the value.
func (s *Server) parsePath(path, query string) (target, bool) {
	t, ok := parseOwn(path, query)
	if !s.hasForeign || ok && !t.isForeign() {
		return t, ok
	}
	if foreign, isForeign := parseForeign(path); isForeign {
		return foreign, true
	}
	return t, ok
}

// isForeign reports whether a path that has the shape of a route means another subject than that of
// the route, if it is one of another service as well.
func (t *target) isForeign() bool {
	switch {
	case t.route.Subject == edge.ByTID:
		return subjectOf(t.value) != edge.ByTID
	case t.route.Prefix == "/skins/" || t.route.Prefix == "/cloaks/":
		return subjectOf(t.value) != edge.ByName
	default:
		return false
	}
}

// parseOwn is parsePath for the routes of views.
func parseOwn(path, query string) (target, bool) {
	after := strings.LastIndexByte(path, '/') + 1
	routes, value := routeTable[path[:after]], path[after:]
	if after == 1 && value != "" { // fixed paths win over the names of players
		if fixed := routeTable[path]; fixed != nil {
			routes, value = fixed, parameterOf(query, "name").value
		} else if path == headsPath {
			return target{}, false
		}
	}
	for _, route := range routes {
		for _, suffix := range route.view.Suffixes {
			if value, ok := cutSuffix(value, suffix); ok {
				return target{route: route, value: value, suffix: suffix}, value != "" || route.Subject == edge.ByNameParameter
			}
		}
	}
	return target{}, false
}

// parameterOf returns the first parameter of a name in a query, in any case, that has a value, or else
// one without.
func parameterOf(query, name string) (first parameter) {
	for query != "" && first.value == "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if key, value, _ := strings.Cut(pair, "="); equalASCIIFold(unescape(key), name) {
			first = parameter{value: unescape(value), given: true}
		}
	}
	return first
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
	if t.route.Subject == edge.ByNameParameter && t.value == "" {
		return edge.Request{}, fault.Field("name", "The parameter name must have the name of a player.")
	}
	if t.foreign.address != nil {
		return parseForeignRequest(t, query, scratch)
	}
	key, ok := appendKey(scratch, t)
	if !ok {
		return edge.Request{}, notFound()
	}
	view := t.route.view
	req := edge.Request{Key: edgeproto.Key(unsafeString(key)), Kind: view.Kind, Slot: view.Slot}
	if view.Picture == nil {
		return req, nil
	}
	if view.Picture.Mode.IsSheet() {
		req.Mode, req.Size, req.Format = view.Picture.Mode, view.Picture.DefaultSize, render.PNG
		return req, nil
	}
	params := parseParameters(query, view.Picture)
	req.Mode = view.Picture.Mode
	if params.is3D {
		req.Mode = view.Picture.Mode3D
	}
	// CDNs choose the content type by the suffix, so it overrides the query.
	req.Format = render.WebP
	if t.suffix == ".png" || t.suffix == "" && params.png {
		req.Format = render.PNG
	}
	size, err := params.size.intOr(view.Picture.SizeParameter, view.Picture.DefaultSize)
	req.Size = req.Mode.SizeOf(size)
	if err == nil && view.Picture.IsAdjustable {
		err = params.adjust(&req, t.route.Subject)
		if params.exact {
			req.Size, req.Exact = req.Mode.ExactOf(size)
		}
	}
	return req, err
}

// parameters are the query parameters of a picture.
type parameters struct {
	png, is3D bool
	size      parameter

	// Of adjustable pictures.
	turn, tilt, pose, wear, no, byDefault parameter
	exact                                 bool
}

// parameter is an optional parameter.
type parameter struct {
	value string
	given bool
}

// parseParameters parses the query of a picture. Names may be in any case. The first of repeated
// parameters counts.
func parseParameters(query string, picture *edge.PictureView) parameters {
	var params parameters
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		switch name = unescape(name); {
		case equalASCIIFold(name, "png"):
			params.png = true
		case equalASCIIFold(name, "3d"):
			params.is3D = true
		case !picture.IsAdjustable && !equalASCIIFold(name, picture.SizeParameter):
		case equalASCIIFold(name, "exact"):
			params.exact = true
		case picture.IsAdjustable && value == "":
		case equalASCIIFold(name, picture.SizeParameter):
			params.size.set(value)
		case equalASCIIFold(name, "turn"):
			params.turn.set(value)
		case equalASCIIFold(name, "tilt"):
			params.tilt.set(value)
		case equalASCIIFold(name, "pose"):
			params.pose.set(value)
		case equalASCIIFold(name, "wear"):
			params.wear.set(value)
		case equalASCIIFold(name, "no"):
			params.no.set(value)
		case equalASCIIFold(name, "default"):
			params.byDefault.set(value)
		}
	}
	return params
}

// adjust sets what the parameters of an adjustable picture say. It ignores those that the mode or the
// subject does not use.
func (p *parameters) adjust(req *edge.Request, subject edge.Subject) (err error) {
	if req.Mode.HasAttitudes() {
		if req.Attitude, err = p.attitude(req.Mode); err != nil {
			return err
		}
	}
	if req.Mode.HasPoses() && p.pose.given {
		var ok bool
		if req.Pose, ok = parsePose(p.pose.value); !ok {
			return fault.Field("pose", "The pose must be stand, walk, wave, sit or sneak.")
		}
	}
	omit, noCape, ok := parseOmissions(p.no.value)
	if !ok {
		return fault.Field("no", "The parameter no must be a list of hat, layers, light and cape, with commas between them.")
	}
	req.Omit = omit & req.Mode.Omissible()
	if req.Mode.ShowsWorn() && subject.CanWear() {
		if req.Wear, ok = p.worn(noCape); !ok {
			return fault.Field("wear", "The parameter wear must be cape, elytra or none.")
		}
	}
	if subject.IsPlayer() && p.byDefault.given {
		if req.Default, ok = parseDefault(p.byDefault.value); !ok {
			return fault.Field("default", "The default must be 404, avatar, classic or slim.")
		}
	}
	return nil
}

// attitude returns the attitude of a turn and a tilt, each by default that of the mode.
func (p *parameters) attitude(mode render.Mode) (render.Attitude, error) {
	turn, tilt := mode.DefaultAttitude()
	if p.turn.given {
		n, ok := parseInteger(p.turn.value)
		if !ok || n < 0 || n >= render.TurnCount {
			return 0, fault.Field("turn", "The turn must be an integer from 0 to 7: it counts eighths of a full turn.")
		}
		turn = int(n)
	}
	if p.tilt.given {
		var ok bool
		if tilt, ok = parseTilt(p.tilt.value); !ok {
			return 0, fault.Field("tilt", "The tilt must be iso, 25 or 0.")
		}
	}
	return mode.Attitude(turn, tilt), nil
}

// worn returns what a figure wears if its player has a cape: a cape, unless the parameters say otherwise.
func (p *parameters) worn(noCape bool) (wear render.Wear, ok bool) {
	wear, ok = render.WearCape, true
	if p.wear.given {
		wear, ok = parseWear(p.wear.value)
	}
	if noCape && wear == render.WearCape {
		wear = render.WearNothing
	}
	return wear, ok
}

// parsePose parses a pose in any case.
func parsePose(text string) (pose render.Pose, ok bool) {
	switch {
	case equalASCIIFold(text, "stand"):
		return render.Stand, true
	case equalASCIIFold(text, "walk"):
		return render.Walk, true
	case equalASCIIFold(text, "wave"):
		return render.Wave, true
	case equalASCIIFold(text, "sit"):
		return render.Sit, true
	case equalASCIIFold(text, "sneak"):
		return render.Sneak, true
	default:
		return 0, false
	}
}

// parseWear parses what a figure wears on its back, in any case.
func parseWear(text string) (wear render.Wear, ok bool) {
	switch {
	case equalASCIIFold(text, "cape"):
		return render.WearCape, true
	case equalASCIIFold(text, "elytra"):
		return render.WearElytra, true
	case equalASCIIFold(text, "none"):
		return render.WearNothing, true
	default:
		return 0, false
	}
}

// parseDefault parses a default in any case.
func parseDefault(text string) (byDefault edge.Default, ok bool) {
	switch {
	case text == "404":
		return edge.DefaultNone, true
	case equalASCIIFold(text, "avatar"):
		return edge.DefaultAvatar, true
	case equalASCIIFold(text, "classic"):
		return edge.DefaultClassic, true
	case equalASCIIFold(text, "slim"):
		return edge.DefaultSlim, true
	default:
		return 0, false
	}
}

// parseTilt parses a tilt in any case.
func parseTilt(text string) (tilt render.Tilt, ok bool) {
	switch {
	case equalASCIIFold(text, "iso"):
		return render.TiltIso, true
	case text == "25":
		return render.Tilt25, true
	case text == "0":
		return render.TiltLevel, true
	default:
		return 0, false
	}
}

// parseOmissions parses a list of what to leave out, in any order and case. noCape says that it has
// cape.
func parseOmissions(list string) (omit render.Omissions, noCape, ok bool) {
	for list != "" {
		var name string
		switch name, list, _ = strings.Cut(list, ","); {
		case name == "":
		case equalASCIIFold(name, "hat"):
			omit |= render.OmitHat
		case equalASCIIFold(name, "layers"):
			omit |= render.OmitLayers
		case equalASCIIFold(name, "light"):
			omit |= render.OmitLight
		case equalASCIIFold(name, "cape"):
			noCape = true
		default:
			return 0, false, false
		}
	}
	return omit, noCape, true
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
	// Two searches for a byte take a sixth of the time of strings.ContainsAny.
	if strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0 {
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
	switch t.route.Subject {
	case edge.ByName, edge.ByNameParameter:
		return edgeproto.AppendNameKey(dst, t.value), isName(t.value)
	case edge.ByNameAndUUID:
		name := cutUUID(t.value)
		return edgeproto.AppendNameKey(dst, name), isName(name)
	case edge.ByUUID:
		return appendUUID(append(dst, edgeproto.UUIDPrefix...), t.value)
	case edge.ByUID:
		uid, ok := parseInteger(t.value)
		if uid <= 0 || uid == math.MaxInt64 {
			return dst, ok
		}
		return strconv.AppendInt(append(dst, edgeproto.UIDPrefix...), uid, 10), ok
	case edge.ByTID:
		tid, ok := parseInteger(t.value)
		return strconv.AppendInt(append(dst, edgeproto.TIDPrefix...), tid, 10), ok && 0 < tid && tid < math.MaxInt64
	case edge.ByHash:
		_, err := skin.ParseHash(t.value)
		return append(append(dst, edgeproto.HashPrefix...), t.value...), err == nil
	}
	return dst, false
}

// cutUUID returns a name without a full stop and a UUID after it. Clients know players by UUIDs
// of other servers, or by ones that they make from the name, so the UUID decides nothing.
func cutUUID(text string) string {
	var scratch [36]byte
	dot := strings.LastIndexByte(text, '.')
	if _, ok := appendUUID(scratch[:0], text[dot+1:]); dot <= 0 || !ok {
		return text
	}
	return text[:dot]
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

// isName reports whether a string could be a player's name, which core bounds as well. Operators
// configure which names are valid beyond that.
func isName(text string) bool {
	return len(text) <= edgeproto.MaxNameBytes && utf8.ValidString(text) && !strings.HasPrefix(text, ".") &&
		!strings.ContainsAny(text, "/?#%") && !strings.ContainsFunc(text, unicode.IsControl)
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
