package api

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// compatTable are the routes of compatible URLs by their prefix.
var compatTable = func() map[string]*edge.CompatRoute {
	table := map[string]*edge.CompatRoute{}
	for _, route := range edge.CompatRoutes {
		table[route.Prefix] = route
	}
	return table
}()

// compatPath is what the path of a compatible URL has beside the subject.
type compatPath struct {
	route                   *edge.CompatRoute // nil for URLs of views
	size                    int               // in pixels; 0: not given
	isSizeFirst             bool              // the size is before the subject
	left, right, noHat, hat bool
	overlay                 bool // the word overlay or helm
	pose                    render.Pose
}

// compatRoutes are the routes of compatible URLs by subject. They have one name in metrics.
var compatRoutes = func() (all [edge.SubjectCount]*route) {
	for subject := range all {
		class := edge.CachePlayer
		if !edge.Subject(subject).IsPlayer() {
			class = edge.CacheTexture
		}
		all[subject] = &route{Route: edge.Route{Subject: edge.Subject(subject), CacheClass: class}, number: compatNumber}
	}
	return all
}()

// craftheadRoot is before crafthead's addresses for Minecraft.
const craftheadRoot = "/minecraft"

// profileTarget returns the path and query at core of a compatible URL of a profile, empty for any other path. The value
// is what a view's route has found in the path. chrly and crafthead ignore the suffix .png.
func (s *Server) profileTarget(path, value, query string) string {
	path = cutSlash(path)
	start := strings.LastIndexByte(path, '/') + 1
	to := "/profile/"
	switch path[:start] {
	case to, craftheadRoot + to:
	case "/textures/signed/":
		query = "unsigned=false"
	case "/textures/":
		to = "/textures/"
	default:
		return ""
	}
	player, _ := cutSuffix(path[start:], ".png")
	if s.upstream == nil || !s.hasCompatRoutes || subjectOf(value) == edge.ByHash || player == "" || !isName(player) {
		return ""
	}
	return yggproto.Root + to + url.PathEscape(player) + "?" + query
}

// compatSuffixes are the suffixes of compatible URLs. All but .webp mean PNG: clients of
// other services are plugins in Java, which reads no WebP.
var compatSuffixes = [...]string{".png", ".webp", ".svg", ".jpg", ".jpeg", ".gif", ".jxl"}

// parseCompat parses a percent-decoded path, and reports whether it is a compatible URL.
//
// After the prefix come the subject, a size on either side of it, and words that turn the head or
// take its hat off, in any order after the first of these. Of two numbers the first is the subject,
// unless the route has the size first. A subject may have player, uuid, user or hash before it.
// Without a prefix the subject may come first, and a word of DiscordSRV after it.
func parseCompat(path string) (target, bool) {
	route, rest := cutCompatPrefix(path)
	if route == nil {
		if route, rest = cutCompatWord(path); route == nil {
			return target{}, false
		}
	}
	t := target{compat: compatPath{route: route}}
	if route.IsPosed && !t.compat.cutPose(&rest) {
		return target{}, false
	}
	subject, isNamed := namedSubject(&rest)
	if strings.IndexByte(rest, '.') >= 0 {
		rest, t.suffix = cutCompatSuffix(rest, isNamed && subject == edge.ByName)
	}
	values, count, ok := t.compat.cutWords(rest)
	if !ok || !t.setValues(values[:count], isNamed) {
		return target{}, false
	}
	switch p := &t.compat; {
	case p.hat && p.route.WithHat != nil:
		p.route = p.route.WithHat
	case (p.left || p.right) && p.route.Turned != nil:
		p.route = p.route.Turned
	case p.isSizeFirst && p.route.WithSizeFirst != nil:
		p.route = p.route.WithSizeFirst
	}
	if !isNamed {
		if isSubjectWord(t.value) {
			return target{}, false
		}
		subject = subjectOf(t.value)
	}
	if t.compat.route.IsTexture && subject.IsPlayer() {
		return target{}, false
	}
	t.route = compatRoutes[subject]
	return t, true
}

// parseCompatQuery returns the target of a route whose subject is a parameter. A name counts before a UUID, which servers
// in offline mode make from the name, and a texture's hash counts last. Without a value it is an unknown player. It
// reports false without any of the parameters.
func parseCompatQuery(route *edge.CompatRoute, query string) (target, bool) {
	isGiven := false
	for _, by := range []struct {
		name    string
		subject edge.Subject
	}{{"name", edge.ByName}, {"uuid", edge.ByUUID}, {"texture", edge.ByHash}} {
		parameter := parameterOf(query, by.name)
		if parameter.value != "" {
			return target{route: compatRoutes[by.subject], value: parameter.value, compat: compatPath{route: route}}, true
		}
		isGiven = isGiven || parameter.given
	}
	return target{route: compatRoutes[edge.ByName], value: impossibleName, compat: compatPath{route: route}}, isGiven
}

// parseEmptySubject parses a path, as it was sent, that has an empty subject: a template whose placeholder was empty. It
// is an unknown player.
func (s *Server) parseEmptySubject(sent []byte) (target, bool) {
	path := unsafeString(sent)
	route, rest := cutCompatPrefix(path)
	if !s.hasCompatRoutes || route == nil {
		return target{}, false
	}
	if word, after, _ := strings.Cut(rest, "/"); route.IsPosed || isSubjectWord(word) {
		rest = after
	}
	before := strings.TrimSuffix(path, rest)
	if !strings.HasPrefix(rest, "/") || routeTable[before] != nil && before != route.Prefix {
		return target{}, false
	}
	return parseCompat(before + impossibleName + strings.TrimSuffix(rest, "/"))
}

// impossibleName is a name that no player has.
const impossibleName = "."

// cutCompatSuffix cuts a suffix off a path, and returns it if it is a known one. It cuts others off the last
// segment only if that is no name then: numbers, UUIDs and hashes have no full stop.
func cutCompatSuffix(path string, isName bool) (rest, suffix string) {
	for _, suffix := range compatSuffixes {
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

// cutCompatPrefix returns the route with the longest prefix of a path, nil if there is none, and what comes after
// the prefix.
func cutCompatPrefix(path string) (route *edge.CompatRoute, rest string) {
	path = strings.TrimPrefix(path, craftheadRoot)
	first := strings.IndexByte(path[min(1, len(path)):], '/') + 2
	if first < 2 {
		return nil, ""
	}
	if second := strings.IndexByte(path[first:], '/') + 1; second > 0 {
		if longer := compatTable[path[:first+second]]; longer != nil {
			return longer, path[first+second:]
		}
	}
	return compatTable[path[:first]], path[first:]
}

// cutCompatWord returns the route of a path with the subject before a word, nil for any other path, and what remains
// without the word.
func cutCompatWord(path string) (route *edge.CompatRoute, rest string) {
	subject, after, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	word, size, hasSize := strings.Cut(after, "/")
	word, suffix := cutCompatSuffix(word, true)
	if route = edge.CompatWords[word]; route == nil || reservedSegments[subject] || suffix != "" && hasSize {
		return nil, ""
	}
	if hasSize {
		return route, subject + "/" + size
	}
	return route, subject + suffix
}

// reservedSegments are first segments of paths that are no subject.
var reservedSegments = func() map[string]bool {
	all := map[string]bool{"": true, craftheadRoot[1:]: true, picturesPath[1:]: true, "profile": true}
	for _, root := range roots.Trees {
		all[root[1:]] = true
	}
	first := func(prefix string) string {
		segment, _, _ := strings.Cut(prefix[1:], "/")
		return segment
	}
	all[first(spriteRoot)] = true
	for _, route := range edge.CompatRoutes {
		all[first(route.Prefix)] = true
	}
	for _, route := range allRoutes {
		all[first(route.Prefix)] = true
	}
	return all
}()

// cutPose cuts the pose off the beginning of a path, and the part of the figure off its end, and reports whether
// there is such a part.
func (p *compatPath) cutPose(path *string) bool {
	pose, rest, _ := strings.Cut(*path, "/")
	end := strings.LastIndexByte(rest, '/')
	if end < 0 {
		return false
	}
	part, suffix := cutCompatSuffix(rest[end+1:], true)
	p.route, p.pose = edge.PosedRoute(pose, part)
	*path = rest[:end] + suffix
	return p.route != nil
}

// cutWords takes the words from the segments of a path, and returns the one or two other segments. An empty segment is
// an unknown player's name. It reports false for more segments.
func (p *compatPath) cutWords(path string) (values [2]string, count int, ok bool) {
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		isWord := count > 0
		switch {
		case isWord && edge.EqualASCIIFold(segment, "left"):
			p.left = true
		case isWord && edge.EqualASCIIFold(segment, "right"):
			p.right = true
		case isWord && edge.EqualASCIIFold(segment, "nohelm"):
			p.noHat = true
		case isWord && edge.EqualASCIIFold(segment, "hat"):
			p.hat = true
		case isWord && !p.route.IsSizeFirst && (edge.EqualASCIIFold(segment, "overlay") || edge.EqualASCIIFold(segment, "helm")):
			p.overlay = true
		case isWord && !p.route.IsSizeFirst && (edge.EqualASCIIFold(segment, "isometric") || edge.EqualASCIIFold(segment, "3d")):
			// as heads and figures are anyway
		case count == len(values):
			return values, count, false
		default:
			values[count] = cmp.Or(segment, impossibleName)
			count++
		}
	}
	return values, count, true
}

// setValues sets the value and the size, which a file ignores, from the segments of a path that are no words. It reports
// false for two that are no size. Of a size with letters the digits at its beginning count, as at crafthead. What
// programs leave around a subject is cut off: blanks, the braces of a UUID, and a suffix before the size.
func (t *target) setValues(values []string, isNamed bool) bool {
	t.value = values[0]
	if len(values) == 2 {
		size, ok := parseSize(values[1])
		isSecond := ok
		if digits := leadingDigits(values[1]); !ok {
			isModel := modelNamed(values[1]) != 0 && t.compat.route.Prefix != "" // else it may be a name, as in /AVATAR/player/Steve
			size, ok = positiveInteger(values[1][:digits]), isNoSize(values[1]) || digits > 0 || isModel
		}
		prefersFirst := t.compat.route.IsSizeFirst && !isNamed || t.compat.route.IsTexture && t.suffix != "" // Blessing Skin 3 has a suffix, 4 has none
		if first, isFirst := parseSize(values[0]); isFirst && isDigits(values[0]) && (!isSecond || prefersFirst) {
			t.value, size, ok, t.compat.isSizeFirst = values[1], first, true, true
		}
		if !ok {
			return false
		}
		t.compat.size = size
		var suffix string
		t.value, suffix = cutCompatSuffix(t.value, isNamed)
		t.suffix = cmp.Or(t.suffix, suffix)
	}
	t.value = cmp.Or(strings.TrimSpace(t.value), impossibleName)
	if inner := strings.Trim(t.value, "{}"); len(inner)+2 == len(t.value) && subjectOf(inner) == edge.ByUUID {
		t.value = inner
	}
	return true
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

// isSubjectWord reports whether subjectByWord knows a word.
func isSubjectWord(word string) bool {
	_, ok := subjectByWord(word)
	return ok
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
	return text != "" && leadingDigits(text) == len(text)
}

// isNoSize reports whether a segment is what programs write for a size that they do not have.
func isNoSize(segment string) bool {
	switch segment {
	case impossibleName, "undefined", "NaN", "null", "None", "nil":
		return true
	}
	// A placeholder that was not replaced, as {size}, %size% or ${size}.
	first, last := segment[0], segment[len(segment)-1]
	return len(segment) > 2 && (first == '%' && last == '%' || (first == '{' || first == '$') && last == '}')
}

// parseSize parses a size: a number, with a sign, and after the number px, a height as in x64, or a factor as in @2x. A
// fraction is cut off. The size is at least 1, and small enough to be multiplied.
func parseSize(text string) (size int, ok bool) {
	text = strings.TrimSpace(text)
	number := strings.TrimLeft(text, "+-")
	digits := leadingDigits(number)
	unit := number[digits:]
	if digits == 0 || len(text)-len(number) > 1 || strings.Trim(unit, "0123456789.,%@ xXpP") != "" {
		return 0, false
	}
	if text[0] == '-' {
		return 1, true
	}
	tenths := 10
	if _, factor, _ := strings.Cut(unit, "@"); leadingDigits(factor) == 1 {
		tenths = 10 * int(factor[0]-'0')
		if len(factor) > 2 && factor[1] == '.' && leadingDigits(factor[2:]) > 0 {
			tenths += int(factor[2] - '0')
		}
	}
	return max(1, positiveInteger(number[:digits])*tenths/10), true
}

// leadingDigits returns the number of digits at the beginning of a text.
func leadingDigits(text string) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// maxTIDDigits is the length of the longest number of a texture.
const maxTIDDigits = 19

// parseCompatRequest returns the request that a compatible URL means. It returns a
// NotFound fault for a texture that cannot exist; a player that cannot exist is an unknown one. It ignores unknown
// parameters and values, and brings sizes into the bounds of the mode.
func parseCompatRequest(t target, query string, scratch []byte) (edge.Request, error) {
	route := t.compat.route
	key, ok := appendKey(scratch, t)
	switch subject := t.route.Subject; {
	case subject == edge.ByTID && len(t.value) > maxTIDDigits, !ok && subject.IsPlayer():
		key = scratch[:0]
	case !ok:
		return edge.Request{}, notFound()
	}
	req := edge.Request{Key: edgeproto.Key(unsafeString(key)), Kind: route.Kind, Slot: route.Slot}
	params := parseCompatParameters(query)
	if route.Kind == edge.KindFile {
		if params.hasDefault {
			req.DefaultSkin = params.byDefaultSkin
		}
		return req, nil
	}

	req.Mode, req.Format = route.Mode, render.PNG
	if t.suffix == ".webp" {
		req.Format = render.WebP
	}
	req.Size, req.Exact = req.Mode.ExactOf(params.sizeOf(&t.compat))
	req.Width = req.Mode.WidthOf(params.widthOf(&t.compat, req.ShownSize()), req.ShownSize())
	if req.Mode == render.Front && params.back {
		req.Mode = render.Back
	}
	if req.Mode.ShowsWorn() && !params.noCape && !route.IsCapeless {
		req.Wear = render.WearCape
	}
	if req.Mode.HasPoses() {
		req.Pose = t.compat.pose
	}
	req.Omit = params.omissions(req.Mode, &t.compat) & req.Mode.Omissible()
	if req.Mode.HasAttitudes() {
		req.Attitude = params.attitude(req.Mode, &t.compat)
	}
	if req.DefaultSkin = params.byDefaultSkin; !params.hasDefault && t.route.Subject == edge.ByName {
		req.DefaultSkin = defaultSkinNamed(t.value)
	}
	if req.Mode != render.Flat && req.Mode != render.Isometric { // the head is the same for both models
		req.Model = params.model
	}
	return req, nil
}
