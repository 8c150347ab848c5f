package api

import (
	"fmt"
	"math/bits"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

const headerCacheStatus = "Cache-Status"

// Names of headers in canonical form, as bytes: SetCanonical does not normalise them, unlike
// all other setters.
var (
	keyETag         = []byte("Etag")
	keyLastModified = []byte(fasthttp.HeaderLastModified)
	keyCacheControl = []byte(fasthttp.HeaderCacheControl)
	keyCacheStatus  = []byte(headerCacheStatus)
	keySurrogateKey = []byte("Surrogate-Key")
	keyCacheTag     = []byte("Cache-Tag")

	keyContentType        = []byte(fasthttp.HeaderContentType)
	keyContentDisposition = []byte(fasthttp.HeaderContentDisposition)
)

// contentTypes are the values of Content-Type.
var contentTypes = [formatCount][]byte{
	formatPNG: []byte("image/png"), formatWebP: []byte("image/webp"), formatJSON: []byte("application/json; charset=utf-8"),
}

// commonHeaders are the headers of every response.
var commonHeaders = [...]struct{ key, value []byte }{
	{[]byte(fasthttp.HeaderXContentTypeOptions), []byte("nosniff")},
	{[]byte(fasthttp.HeaderAccessControlAllowOrigin), []byte("*")},
	{[]byte(fasthttp.HeaderCrossOriginResourcePolicy), []byte("cross-origin")},
	{[]byte(fasthttp.HeaderAccessControlExposeHeaders), []byte("Age, Cache-Status, Content-Length, ETag, Last-Modified, Retry-After, X-Request-ID")},
}

// Values of Cache-Control, see edge.CacheClass.
var (
	ccNotFound = []byte("public, max-age=15")
	// Mods keep a 204 for an hour unless max-age is shorter, and do not keep a 404 at all.
	ccNoContent = []byte("public, max-age=60")
	// The default avatar of a player that may come to be.
	ccDefault = ccNoContent
	ccHeads   = []byte("public, max-age=5, stale-while-revalidate=60")
	ccSprite  = []byte("public, max-age=5")
	ccFile    = []byte("public, max-age=31536000, immutable")
	ccTexture = []byte("public, max-age=86400, stale-while-revalidate=86400, stale-if-error=604800")
	// Long enough for concurrent requests to share, too short to outlive an earlier purge.
	ccShort = []byte("public, max-age=1")
)

// setCommonHeaders sets the headers of every response.
func setCommonHeaders(to httpserver.Response) {
	for _, line := range commonHeaders {
		to.SetCanonical(line.key, line.value)
	}
}

func newPlayerCacheControl(shared time.Duration) []byte {
	sMaxage := ""
	if shared > 0 {
		sMaxage = fmt.Sprintf(", s-maxage=%d", shared/time.Second)
	}
	return []byte("public, max-age=60" + sMaxage + ", stale-while-revalidate=600, stale-if-error=86400")
}

// caching is what decides the caching headers of a response beside its subject.
type caching struct {
	mayBeStale bool
	lookup     edge.LookupResult
	outcome    cache.Outcome
}

// writeCaching sets the headers for caches. It may overwrite the spaces of the tags.
func (s *Server) writeCaching(to httpserver.Response, control []byte, c caching, tags []byte) {
	if c.mayBeStale {
		control = ccShort
	}
	to.SetCanonical(keyCacheControl, control)
	to.SetCanonical(keyCacheStatus, cacheStatus(c.lookup, c.outcome))
	s.tags.setHeaders(to, tags)
}

// revisionTagPrefix is of the tag of the renderer's revision, under which a CDN can purge all pictures of it.
const revisionTagPrefix = "render-"

// cacheControl returns the Cache-Control of a response with content.
func (s *Server) cacheControl(x *exchange) []byte {
	if x.response.IsDefault && x.request.DefaultSkin != edge.DefaultForUsers {
		return ccDefault
	}
	switch x.route.CacheClass {
	case edge.CacheImmutable:
		return ccFile
	case edge.CacheTexture:
		return ccTexture
	case edge.CachePlayer:
	}
	return s.playerCacheControl
}

// The values of Cache-Status (RFC 9211).
const cacheStatusNoCache = "veneer; fwd=bypass" // no cache is involved

var (
	cacheStatusMiss        = []byte("veneer; fwd=miss") // not in the cache and not stored, or not found
	cacheStatusUnavailable = []byte("veneer; detail=unavailable")
	// By outcome, and then by whether the mapping is stale.
	cacheStatuses = [...][2][]byte{
		cache.Hit:          {[]byte("veneer; hit"), []byte("veneer; hit; detail=stale")},
		cache.Coalesced:    {[]byte("veneer; fwd=miss; collapsed"), []byte("veneer; fwd=miss; collapsed; detail=stale")},
		cache.Miss:         {[]byte("veneer; fwd=miss; stored"), []byte("veneer; fwd=miss; stored; detail=stale")},
		cache.MissUncached: {cacheStatusMiss, []byte("veneer; fwd=miss; detail=stale")},
	}
)

// cacheStatus returns the Cache-Status of a response with content. It is a hit only if both
// the mapping and the picture were cached.
func cacheStatus(lookup edge.LookupResult, cacheOutcome cache.Outcome) []byte {
	switch {
	case lookup == edge.LookupStale:
		return cacheStatuses[cacheOutcome][1]
	case lookup == edge.LookupMiss && cacheOutcome == cache.Hit:
		return cacheStatuses[cache.Miss][0]
	default:
		return cacheStatuses[cacheOutcome][0]
	}
}

// errorCacheStatus returns the Cache-Status of a request that failed.
func errorCacheStatus(err error) []byte {
	if fault.KindOf(err) == fault.Unavailable {
		return cacheStatusUnavailable
	}
	return cacheStatusMiss
}

// Tags is the set of headers with cache tags: the names of everything that a response depends
// on, by which a CDN can purge it.
type Tags uint8

// The values of Tags, a bit set.
const (
	TagsOff      Tags = 0
	SurrogateKey Tags = 1
	CacheTag     Tags = 2
	TagsBoth     Tags = SurrogateKey | CacheTag
)

// UnmarshalText reads off, surrogate-key, cache-tag or both.
func (t *Tags) UnmarshalText(text []byte) error {
	switch string(text) {
	case "off":
		*t = TagsOff
	case "surrogate-key":
		*t = SurrogateKey
	case "cache-tag":
		*t = CacheTag
	case "both":
		*t = TagsBoth
	default:
		return fmt.Errorf("is %.100q, but must be off, surrogate-key, cache-tag or both", text)
	}
	return nil
}

// headers returns the number of the headers, at least 1.
func (t Tags) headers() int { return max(1, bits.OnesCount8(uint8(t))) }

// setHeaders sets the headers to tags that are separated by spaces. It may overwrite the
// spaces with commas.
func (t Tags) setHeaders(to httpserver.Response, tags []byte) {
	if len(tags) == 0 {
		return
	}
	if t&SurrogateKey != 0 {
		to.SetCanonical(keySurrogateKey, tags)
	}
	if t&CacheTag != 0 {
		for i, c := range tags {
			if c == ' ' {
				tags[i] = ','
			}
		}
		to.SetCanonical(keyCacheTag, tags)
	}
}

// notFoundTags returns the tags of a response that there is no such picture.
func notFoundTags(req *edge.Request, mapping edgeproto.Mapping) []byte {
	return appendNameTag(appendTags(nil, req, mapping), req.Key)
}

// appendNameTag appends the tag of the name that a key is for, under which responses are purged when the
// player is created.
func appendNameTag(tags []byte, key edgeproto.Key) []byte {
	if name, ok := strings.CutPrefix(string(key), edgeproto.NamePrefix); ok {
		tags = appendTag(tags, edgeproto.NameTagPrefix, url.PathEscape(name))
	}
	return tags
}

// appendTags appends the tags of a key, of what it maps to, and of the texture. A hash is no
// tag, since it would reveal private files.
func appendTags(tags []byte, req *edge.Request, mapping edgeproto.Mapping) []byte {
	// Users and textures have tags even while they do not exist.
	uid, isUser := strings.CutPrefix(string(req.Key), edgeproto.UIDPrefix)
	tid, isTexture := strings.CutPrefix(string(req.Key), edgeproto.TIDPrefix)
	switch {
	case isUser:
		tags = appendTag(tags, edgeproto.UserTagPrefix, uid)
		if mapping.User != nil && mapping.User.Avatar != 0 {
			tags = appendTagID(tags, edgeproto.TextureTagPrefix, mapping.User.Avatar)
		}
	case isTexture:
		tags = appendTag(tags, edgeproto.TextureTagPrefix, tid)
	case mapping.Player != nil:
		tags = appendTagID(tags, edgeproto.PlayerTagPrefix, mapping.Player.PID)
		if texture := req.Slot.Of(mapping.Player); texture != nil {
			tags = appendTagID(tags, edgeproto.TextureTagPrefix, texture.TID)
		}
	case mapping.Texture != nil:
		tags = appendTagID(tags, edgeproto.TextureTagPrefix, mapping.Texture.TID)
	}
	return tags
}

func appendTag(tags []byte, prefix, value string) []byte {
	if len(tags) > 0 {
		tags = append(tags, ' ')
	}
	return append(append(tags, prefix...), value...)
}

func appendTagID(tags []byte, prefix string, id int64) []byte {
	return strconv.AppendInt(appendTag(tags, prefix, ""), id, 10)
}
