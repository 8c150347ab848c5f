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

// routeTable are the routes by their prefix. Routes with the same prefix are in the order of the views.
var routeTable = func() map[string][]*route {
	table := map[string][]*route{}
	for _, route := range allRoutes {
		table[route.Prefix] = append(table[route.Prefix], route)
	}
	return table
}()

// Numbers of routes that are no route of a view.
var (
	compatNumber = len(allRoutes)
	headsNumber  = len(allRoutes) + 1
	spriteNumber = len(allRoutes) + 2
)

// routeNames are the names of all routes by their number.
var routeNames = func() (names []string) {
	for _, route := range allRoutes {
		names = append(names, route.view.RouteName(route.Route))
	}
	return append(names, "compat", headsPath, spriteRoot+"{view}")
}()

// target is a parsed path.
type target struct {
	route  *route
	value  string     // the name, number or hash, not yet validated
	suffix string     // as in the view, without regard to case
	compat compatPath // of a compatible URL, whose route has no view
}

// parsePath parses a percent-decoded path, and a query as far as it has the value, and reports
// whether they have the shape of a route. It does not validate the value.
func (s *Server) parsePath(path, query string) (target, bool) {
	path = cutSlash(path)
	t, ok := parseOwn(path, query)
	if !s.hasCompatRoutes || ok && !t.isCompat() || !ok && t.route != nil { // an own address, with or without a value
		return t, ok
	}
	if compat, isCompat := parseCompat(path); isCompat {
		return compat, true
	}
	if route := edge.CompatQueries[path]; route != nil {
		return parseCompatQuery(route, query)
	}
	path += "/"
	if route, rest := cutCompatPrefix(path); route != nil && rest == "" && routeTable[route.Prefix] == nil { // an empty placeholder at the end
		return parseCompat(path + impossibleName)
	}
	return t, ok
}

// cutSlash returns a path without a slash at its end, which never matters.
func cutSlash(path string) string {
	if end := len(path) - 1; end > 0 && path[end] == '/' {
		return path[:end]
	}
	return path
}

// isCompat reports whether a path with the shape of a view's route means another subject, if it is a compatible
// URL as well.
func (t *target) isCompat() bool {
	switch subject := subjectOf(t.value); {
	case t.route.Subject == edge.ByTID:
		return subject != edge.ByTID
	case t.route.Subject != edge.ByName || t.route.view.Kind != edge.KindFile:
		return false
	case t.route.Prefix == "/skins/" || t.route.Prefix == "/cloaks/":
		return subject != edge.ByName
	default: // digits are the name of a player
		return subject == edge.ByUUID || subject == edge.ByHash
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

// cutParameter cuts the first parameter off a query. The name is decoded, and the value is not. Pages that encode a
// query twice have &amp; in place of &.
func cutParameter(query string) (name, value, rest string) {
	pair, rest, _ := strings.Cut(query, "&")
	name, value, _ = strings.Cut(strings.TrimPrefix(pair, "amp;"), "=")
	return unescape(name), value, rest
}

// parameterOf returns the first parameter of a name in a query, in any case, that has a value, or else
// one without.
func parameterOf(query, name string) (first parameter) {
	for query != "" && first.value == "" {
		var key, value string
		if key, value, query = cutParameter(query); edge.EqualASCIIFold(key, name) {
			first = parameter{value: unescape(value), given: true}
		}
	}
	return first
}

// cutSuffix returns a string without a suffix of any case, and reports whether it had it. The
// suffix is given in lower case.
func cutSuffix(text, suffix string) (string, bool) {
	from := len(text) - len(suffix)
	if from < 0 || !edge.EqualASCIIFold(text[from:], suffix) {
		return text, false
	}
	return text[:from], true
}

// parseRequest returns the request that a path and a query mean. It returns a NotFound fault
// for a value that cannot exist, and an Invalid one for an invalid query. The key is appended
// to scratch, and valid as long as that is not overwritten.
func parseRequest(t target, query string, scratch []byte) (edge.Request, error) {
	if t.route.Subject == edge.ByNameParameter && t.value == "" {
		return edge.Request{}, fault.Field("name", "The parameter name must have the name of a player.")
	}
	if t.compat.route != nil {
		return parseCompatRequest(t, query, scratch)
	}
	key, ok := appendKey(scratch, t)
	if !ok {
		return edge.Request{}, notFound()
	}
	view := t.route.view
	req := edge.Request{Key: edgeproto.Key(unsafeString(key)), Kind: view.Kind, Slot: view.Slot}
	if view.Picture == nil {
		if !view.HasDownload || view.Slot != edge.SkinSlot || !t.route.Subject.IsPlayer() {
			return req, nil
		}
		return req, setDefaultSkin(&req, presentParameter(query, "default"))
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
		if err == nil && req.Mode.HasWidth() && params.width.given {
			var width int
			width, err = params.width.intOr("width", 0)
			req.Width = req.Mode.WidthOf(width, req.ShownSize())
		}
	}
	return req, err
}

// setDefaultSkin sets the default skin, unless the parameter is absent.
func setDefaultSkin(req *edge.Request, name parameter) error {
	if !name.given {
		return nil
	}
	var ok bool
	if req.DefaultSkin, ok = edge.DefaultSkins.Parse(name.value); !ok {
		return fault.Field("default", "The default must be %s.", edge.DefaultSkins.List("or"))
	}
	return nil
}

// parameters are the query parameters of a picture.
type parameters struct {
	png, is3D bool
	size      parameter

	// Of adjustable pictures.
	width, turn, tilt, pose, wear, background, no, byDefaultSkin parameter
	exact                                                        bool
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
		// As cutParameter, which is not inlined: most hits have a parameter.
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(strings.TrimPrefix(pair, "amp;"), "=")
		switch name = unescape(name); {
		case edge.EqualASCIIFold(name, "png"):
			params.png = true
		case edge.EqualASCIIFold(name, "3d"):
			params.is3D = true
		case !picture.IsAdjustable && !edge.EqualASCIIFold(name, picture.SizeParameter):
		case edge.EqualASCIIFold(name, "exact"):
			params.exact = true
		case picture.IsAdjustable && value == "":
		case edge.EqualASCIIFold(name, picture.SizeParameter):
			params.size.set(value)
		case edge.EqualASCIIFold(name, "width"):
			params.width.set(value)
		case edge.EqualASCIIFold(name, "turn"):
			params.turn.set(value)
		case edge.EqualASCIIFold(name, "tilt"):
			params.tilt.set(value)
		case edge.EqualASCIIFold(name, "pose"):
			params.pose.set(value)
		case edge.EqualASCIIFold(name, "wear"):
			params.wear.set(value)
		case edge.EqualASCIIFold(name, "no"):
			params.no.set(value)
		case edge.EqualASCIIFold(name, "default"):
			params.byDefaultSkin.set(value)
		case edge.EqualASCIIFold(name, "background"):
			params.background.set(value)
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
		if req.Pose, ok = edge.Poses.Parse(p.pose.value); !ok {
			return fault.Field("pose", "The pose must be %s.", edge.Poses.List("or"))
		}
	}
	if req.Mode.HasBackground() && p.background.given {
		colour, err := strconv.ParseUint(p.background.value, 16, 24)
		if err != nil || len(p.background.value) != len("RRGGBB") {
			return fault.Field("background", "The background must be six hexadecimal digits, as 1f6b3a.")
		}
		req.Background = render.HasBackground | render.Background(colour)
	}
	omitted, ok := parseOmissions(p.no.value)
	if !ok {
		return fault.Field("no", "The parameter no must be a list of %s, with commas between them.", edge.Omissions.List("and"))
	}
	req.Omit = omitted.Omit & req.Mode.Omissible()
	if req.Mode.ShowsWorn() && subject.CanWear() {
		if req.Wear, ok = p.worn(omitted.Cape); !ok {
			return fault.Field("wear", "The parameter wear must be %s.", edge.Wears.List("or"))
		}
	}
	if !subject.IsPlayer() {
		return nil
	}
	return setDefaultSkin(req, p.byDefaultSkin)
}

// attitude returns the attitude of a turn and a tilt. The mode has a default for each.
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
		if tilt, ok = edge.Tilts.Parse(p.tilt.value); !ok {
			return 0, fault.Field("tilt", "The tilt must be %s.", edge.Tilts.List("or"))
		}
	}
	return mode.Attitude(turn, tilt), nil
}

// worn returns what a figure wears if its player has a cape: a cape, unless the parameters say otherwise.
func (p *parameters) worn(noCape bool) (wear render.Wear, ok bool) {
	wear, ok = render.WearCape, true
	if p.wear.given {
		wear, ok = edge.Wears.Parse(p.wear.value)
	}
	if noCape && wear == render.WearCape {
		wear = render.WearNothing
	}
	return wear, ok
}

// parseOmissions parses a list of what to leave out, in any order and case.
func parseOmissions(list string) (all edge.Omission, ok bool) {
	for list != "" {
		var name string
		if name, list, _ = strings.Cut(list, ","); name == "" {
			continue
		}
		one, ok := edge.Omissions.Parse(name)
		if !ok {
			return edge.Omission{}, false
		}
		all.Omit |= one.Omit
		all.Cape = all.Cape || one.Cape
	}
	return all, true
}

func (p *parameter) set(value string) {
	if !p.given {
		*p = parameter{value: unescape(value), given: true}
	}
}

// intOr returns the parameter as an integer, and a default if it is not given, or has no name as of a picture of one size.
func (p *parameter) intOr(name string, def int) (int, error) {
	if !p.given || name == "" {
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
		if subjectOf(t.value) == edge.ByUUID { // longer than a name
			return appendUUID(append(dst, edgeproto.UUIDPrefix...), t.value)
		}
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
