package api

import (
	"math"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// Paths of responses about many subjects, which the query lists.
const (
	headsPath  = "/heads.json"
	spriteRoot = "/sprite/"
)

// list is a parameter that lists subjects.
type list struct {
	name    string
	subject edge.Subject
	of      string
}

// lists are all of them.
var lists = []list{
	{"players", edge.ByName, "names of players"},
	{"uuids", edge.ByUUID, "UUIDs of players"},
	{"users", edge.ByUID, "numbers of users"},
	{"hashes", edge.ByHash, "hashes of textures"},
}

// parseListName returns the index in lists of a parameter, -1 for any other one, and its place in an array, as in
// players[1]. It is 0 without one, as in players or players[].
func parseListName(name string) (number, place int) {
	name, index, isArray := strings.Cut(name, "[")
	if isArray {
		digits, ok := strings.CutSuffix(index, "]")
		if !ok || digits != "" && !isDigits(digits) {
			return -1, 0
		}
		place = positiveInteger(digits)
	}
	return slices.IndexFunc(lists, func(l list) bool { return edge.EqualASCIIFold(name, l.name) }), place
}

// defaultSpriteSize is the side of a picture in a sprite, in pixels.
const defaultSpriteSize = 32

// listed are the subjects of a query, in its order.
type listed struct {
	texts  []string // as they are in the query, decoded
	keys   []edgeproto.Key
	byHash int               // how many are hashes
	listOf map[string]string // the list of each text
	// isNamed says that the response names subjects by their texts.
	isNamed bool
}

// parseLists parses the lists of subjects of a query.
func parseLists(query string, allowsHashes bool) (all listed, err error) {
	all.isNamed = !allowsHashes
	type member struct {
		list, place int // the list's number
		text        string
	}
	var members []member
	for query != "" {
		var name, value string
		name, value, query = cutParameter(query)
		list, place := parseListName(name)
		if list < 0 || lists[list].subject == edge.ByHash && !allowsHashes {
			continue
		}
		first := len(members)
		for first > 0 && members[first-1].list == list && members[first-1].place > place { // in the order of the places
			first--
		}
		for text := range strings.SplitSeq(unescape(value), ",") {
			members = slices.Insert(members, first, member{list, place, strings.TrimSpace(text)})
			first++
		}
		if len(members) > maxListed {
			break
		}
	}
	for _, m := range members {
		if err := all.add(lists[m.list].name, lists[m.list].subject, m.text); err != nil {
			return all, err
		}
	}
	if len(all.keys) == 0 {
		return all, fault.Field("players", "The parameter players must list the names of players, with commas between them.")
	}
	return all, nil
}

// maxListed is the most texts of a query that are read, empty ones included.
const maxListed = 4 * edge.MaxBatch

// add adds a subject of a list, unless it is empty. One that cannot exist is a user without a skin. It returns an Invalid
// fault for one too many, and for one that is in another list as well.
func (l *listed) add(list string, by edge.Subject, text string) error {
	if text == "" {
		return nil
	}
	if other, ok := l.listOf[text]; ok && other != list && l.isNamed {
		return fault.Field(list, "The same text cannot be in the lists %s and %s.", other, list)
	}
	if l.listOf == nil {
		l.listOf = map[string]string{}
	}
	l.listOf[text] = list
	if len(l.keys) == edge.MaxBatch {
		return fault.Field(list, "At most %d subjects can be listed.", edge.MaxBatch)
	}
	key, ok := appendKey(nil, target{route: compatRoutes[by], value: text})
	if !ok || len(key) == 0 {
		key = []byte(edgeproto.UIDKey(0))
	}
	l.texts, l.keys = append(l.texts, text), append(l.keys, edgeproto.Key(key))
	if by == edge.ByHash {
		l.byHash++
	}
	return nil
}

// serveBatch serves a request for many subjects, and reports whether the path is of one.
func (s *Server) serveBatch(rc *fasthttp.RequestCtx, path string) (isBatch bool, err error) {
	path = cutSlash(path)
	number := headsNumber
	mode, format, isSprite := parseSpritePath(path, unsafeString(rc.URI().QueryString()))
	if isSprite {
		number = spriteNumber
	} else if path != headsPath {
		return false, nil
	}
	isRead, err := s.beginView(rc, number, "This")
	if !isRead {
		return true, err
	}
	if isSprite {
		err = s.serveSprite(rc, mode, format)
	} else {
		err = s.serveHeads(rc)
	}
	if err != nil {
		s.routes.set(rc, number, noFormat, errorOutcome(err))
		if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.PreconditionFailed {
			rc.Response.Header.SetCanonical(keyCacheStatus, errorCacheStatus(err))
		}
	}
	return true, err
}

// serveHeads responds with the hashes and types of the skins of players and users.
func (s *Server) serveHeads(rc *fasthttp.RequestCtx) error {
	all, err := parseLists(unsafeString(rc.URI().QueryString()), false)
	if err != nil {
		return err
	}
	ctx, cancel := s.workContext(rc)
	defer cancel()
	mappings, lookup, err := s.pictures.LookupAll(ctx, all.keys)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(all.texts))
	body := []byte{'{'}
	for i, text := range all.texts {
		if seen[text] {
			continue
		}
		seen[text] = true
		if len(seen) > 1 {
			body = append(body, ',')
		}
		body = append(appendJSON(body, text), ':')
		texture := edge.SkinOf(mappings[i])
		if texture == nil {
			body = append(body, "null"...)
			continue
		}
		body = append(texture.Hash.AppendTo(append(body, `{"hash":"`...)), `","type":"`...)
		body = append(append(body, texture.Type.String()...), `"}`...)
	}
	body = append(body, '}')
	return s.writeBatch(rc, batch{
		number: headsNumber, format: formatJSON, all: all, cacheControl: ccHeads,
		SpriteResponse: edge.SpriteResponse{
			Mappings: mappings, Lookup: lookup, MayBeStale: s.pictures.MayBeStale(all.keys, mappings, lookup),
			ETag: edge.ETagOf(body), Outcome: cache.Hit, Body: body,
		},
	})
}

// serveSprite responds with the faces or heads of many subjects in one picture.
func (s *Server) serveSprite(rc *fasthttp.RequestCtx, mode render.Mode, format render.Format) error {
	query := unsafeString(rc.URI().QueryString())
	all, err := parseLists(query, true)
	if err != nil {
		return err
	}
	sprite := edge.Sprite{Keys: all.keys}
	sprite.Mode, sprite.Format = mode, format
	size := presentParameter(query, "size")
	if sprite.Size, err = size.intOr("size", defaultSpriteSize); err != nil {
		return err
	}
	if sprite.Size > edge.MaxSpriteSize {
		return fault.Field("size", "The size of a picture in a sprite is at most %d pixels.", edge.MaxSpriteSize)
	}
	if parameterOf(query, "exact").given {
		sprite.Size, sprite.Exact = mode.ExactOf(sprite.Size)
	} else {
		sprite.Size = mode.SizeOf(sprite.Size)
	}
	columns := presentParameter(query, "columns")
	if sprite.Columns, err = columns.intOr("columns", int(math.Ceil(math.Sqrt(float64(len(all.keys)))))); err != nil {
		return err
	}
	if sprite.Columns < 1 || sprite.Columns > edge.MaxSpriteColumns {
		return fault.Field("columns", "The columns of a sprite are 1 to %d.", edge.MaxSpriteColumns)
	}

	ctx, cancel := s.workContext(rc)
	defer cancel()
	x := batch{number: spriteNumber, format: formatWebP, all: all, cacheControl: ccSprite}
	if all.byHash == len(all.keys) {
		x.cacheControl = ccTexture
	}
	if format == render.PNG {
		x.format = formatPNG
	}
	if x.SpriteResponse, err = s.pictures.FindSprite(ctx, sprite); err != nil {
		return err
	}
	isUnchanged, err := checkETag(rc.Request.Header.RawHeaders(), x.ETag)
	if err == nil && !isUnchanged {
		err = s.pictures.LoadSprite(ctx, &x.SpriteResponse)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(x.Mappings, func(m edgeproto.Mapping) bool { return edge.SkinOf(m) == nil }) {
		x.cacheControl = ccSprite // a texture may come to be
	}
	return s.writeBatch(rc, x)
}

// presentParameter returns a parameter of a query. One without a value is absent.
func presentParameter(query, name string) parameter {
	p := parameterOf(query, name)
	p.given = p.value != ""
	return p
}

// parseSpritePath parses the path of a sprite, and reports whether it is one.
func parseSpritePath(path, query string) (mode render.Mode, format render.Format, ok bool) {
	name, ok := strings.CutPrefix(path, spriteRoot)
	if !ok {
		return 0, 0, false
	}
	format = render.WebP
	if stem, isPNG := cutSuffix(name, ".png"); isPNG {
		name, format = stem, render.PNG
	} else if stem, isWebP := cutSuffix(name, ".webp"); isWebP {
		name = stem
	} else if parameterOf(query, "png").given {
		format = render.PNG
	}
	switch name {
	case "face":
		return render.Flat, format, true
	case "head":
		return render.Isometric, format, true
	default:
		return 0, 0, false
	}
}

// maxTags is the length of all headers with the tags of a batch, in bytes: the whole header block is then below 4,000,
// and fits into nginx's buffer of 4,096.
const maxTags = 3000

// listTag is the tag of a batch whose tags would be longer. Core names it in no purge, so the response expires soon.
const listTag = "lists"

// batch is a response about many subjects.
type batch struct {
	number       int // of the route
	format       format
	all          listed
	cacheControl []byte
	edge.SpriteResponse
}

// writeBatch writes a response about many subjects, or 304.
func (s *Server) writeBatch(rc *fasthttp.RequestCtx, x batch) error {
	isUnchanged, err := checkETag(rc.Request.Header.RawHeaders(), x.ETag)
	if err != nil {
		return err
	}
	to := httpserver.ResponseTo(rc)
	outcome := cacheOutcomes[x.Outcome]
	if isUnchanged {
		outcome = outcomeNotModified
		to.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		to.SetBodyRaw(x.Body)
		to.SetCanonical(keyContentType, contentTypes[x.format])
	}
	to.SetCanonical(keyETag, x.ETag[:])
	most := maxTags / s.tags.headers()
	tags := x.appendTags(nil, true)
	if len(tags) > most {
		tags = x.appendTags(nil, false)
	}
	if len(tags) > most {
		tags = append(tags[:0], listTag...)
		if x.number == spriteNumber {
			x.cacheControl = ccSprite
		}
	}
	if x.Revision != "" {
		tags = appendTag(tags, revisionTagPrefix, x.Revision)
	}
	s.writeCaching(to, x.cacheControl, caching{x.MayBeStale, x.Lookup, x.Outcome}, tags)
	s.routes.set(rc, x.number, x.format, outcome)
	return nil
}

// appendTags appends the tag of each key. Without hasNames, the names of no players have none.
func (b *batch) appendTags(tags []byte, hasNames bool) []byte {
	for i, key := range b.all.keys {
		tags = appendSubjectTag(tags, key, b.Mappings[i], hasNames)
	}
	return tags
}

// appendSubjectTag appends the tag of a key alone: of the player, the user, the texture, or the name
// of no player. Tags of the textures that players wear would double the length: 100 players have 1.2 KB. A player
// changes with its textures.
func appendSubjectTag(tags []byte, key edgeproto.Key, mapping edgeproto.Mapping, hasNames bool) []byte {
	switch {
	case mapping.Player != nil:
		return appendTagID(tags, edgeproto.PlayerTagPrefix, mapping.Player.PID)
	case mapping.Texture != nil:
		return appendTagID(tags, edgeproto.TextureTagPrefix, mapping.Texture.TID)
	}
	if uid, ok := strings.CutPrefix(string(key), edgeproto.UIDPrefix); ok {
		return appendTag(tags, edgeproto.UserTagPrefix, uid)
	}
	if !hasNames {
		return tags
	}
	return appendNameTag(tags, key)
}
