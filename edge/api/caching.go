package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

const headerCacheStatus = "Cache-Status"

// Headers and values of pictures, as bytes: SetCanonical is the only way to set a
// header without work for its name.
var (
	keyETag         = []byte("Etag")
	keyLastModified = []byte(fasthttp.HeaderLastModified)
	keyCacheControl = []byte(fasthttp.HeaderCacheControl)
	keyCacheStatus  = []byte(headerCacheStatus)
	keySurrogateKey = []byte("Surrogate-Key")
	keyCacheTag     = []byte("Cache-Tag")

	keyContentType = []byte(fasthttp.HeaderContentType)
)

// contentTypes are the values of Content-Type.
var contentTypes = [formatCount][]byte{
	formatPNG: []byte("image/png"), formatWebP: []byte("image/webp"), formatJSON: []byte("application/json; charset=utf-8"),
}

// commonHeaders is what every answer has.
var commonHeaders = [...]struct{ key, value []byte }{
	{[]byte(fasthttp.HeaderXContentTypeOptions), []byte("nosniff")},
	{[]byte(fasthttp.HeaderAccessControlAllowOrigin), []byte("*")},
	{[]byte(fasthttp.HeaderCrossOriginResourcePolicy), []byte("cross-origin")},
	{[]byte(fasthttp.HeaderAccessControlExposeHeaders), []byte("Age, Cache-Status, Content-Length, ETag, Last-Modified, Retry-After, X-Request-ID")},
}

// Cache-Control, by what may change behind an address. A file with a hash never
// does; a tid or a hash leads elsewhere only when a texture is deleted; a name
// whenever its player likes.
var (
	ccNotFound = []byte("public, max-age=15")
	ccFile     = []byte("public, max-age=31536000, immutable")
	ccTexture  = []byte("public, max-age=86400, stale-while-revalidate=86400, stale-if-error=604800")
	// Long enough for a crowd to share, too short to outlive a purge that came first.
	ccShort = []byte("public, max-age=1")
)

// setCommonHeaders sets what every answer has.
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

func (s *Server) cacheControl(res *response) []byte {
	switch route := res.target.route; {
	case res.mayBeStale:
		return ccShort
	case route == textureFile:
		return ccFile
	case route == avatarOfTID || route == avatarOfHash || route == previewOfTID || route == previewOfHash:
		return ccTexture
	default:
		return s.playerCacheControl
	}
}

// The values of Cache-Status (RFC 9211).
const cacheStatusBypass = "veneer; fwd=bypass" // memory has nothing to do with it

var (
	cacheStatusMiss        = []byte("veneer; fwd=miss") // asked for elsewhere, and not kept, if it was there at all
	cacheStatusUnavailable = []byte("veneer; detail=unavailable")
	// By how it was come by, and then by whether core may know better.
	cacheStatuses = [...][2][]byte{
		edge.Hit:          {[]byte("veneer; hit"), []byte("veneer; hit; detail=stale")},
		edge.Coalesced:    {[]byte("veneer; fwd=miss; collapsed"), []byte("veneer; fwd=miss; collapsed; detail=stale")},
		edge.Miss:         {[]byte("veneer; fwd=miss; stored"), []byte("veneer; fwd=miss; stored; detail=stale")},
		edge.MissUncached: {cacheStatusMiss, []byte("veneer; fwd=miss; detail=stale")},
	}
)

// cacheStatus says whether an answer came from memory.
func cacheStatus(source edge.LookupResult, how edge.Outcome) []byte {
	switch {
	case source == edge.LookupStale:
		return cacheStatuses[how][1]
	case source == edge.LookupMiss && how == edge.Hit:
		return cacheStatuses[edge.Miss][0]
	default:
		return cacheStatuses[how][0]
	}
}

// errorCacheStatus says why there is no answer from memory.
func errorCacheStatus(err error) []byte {
	if fault.KindOf(err) == fault.Unavailable {
		return cacheStatusUnavailable
	}
	return cacheStatusMiss
}

// Tags says in which headers answers name what they depend on, so that CDNs can
// be told to forget it.
type Tags uint8

// The choices of Tags; TagsBoth is both bits.
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

// setHeaders sets the headers to tags that are separated by spaces. It leaves them
// separated by commas.
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

// notFoundTags returns what the absence of a picture depends on.
func notFoundTags(want edge.Request, led edgeproto.Mapping) []byte {
	tags := appendTags(nil, want, led)
	if key := edgeproto.Key(want.Key); strings.HasPrefix(string(key), edgeproto.NamePrefix) {
		tags = appendTag(tags, key.Tag(), "")
	}
	return tags
}

// appendTags appends tags for a key and for all on the way from it to a texture.
// Never a hash: it would give private files away.
func appendTags(tags []byte, want edge.Request, led edgeproto.Mapping) []byte {
	// Users and textures have tags also while they do not exist.
	uid, isUser := strings.CutPrefix(unsafeString(want.Key), edgeproto.UIDPrefix)
	tid, isTexture := strings.CutPrefix(unsafeString(want.Key), edgeproto.TIDPrefix)
	switch {
	case isUser:
		tags = appendTag(tags, "user-", uid)
		if led.User != nil && led.User.Avatar != 0 {
			tags = appendTagID(tags, "texture-", led.User.Avatar)
		}
	case isTexture:
		tags = appendTag(tags, "texture-", tid)
	case led.Player != nil:
		tags = appendTagID(tags, "player-", led.Player.PID)
		if worn := want.Slot.Of(led.Player); worn != nil {
			tags = appendTagID(tags, "texture-", worn.TID)
		}
	case led.Texture != nil:
		tags = appendTagID(tags, "texture-", led.Texture.TID)
	}
	return tags
}

func appendTag(tags []byte, kind, value string) []byte {
	if len(tags) > 0 {
		tags = append(tags, ' ')
	}
	return append(append(tags, kind...), value...)
}

func appendTagID(tags []byte, kind string, id int64) []byte {
	return strconv.AppendInt(appendTag(tags, kind, ""), id, 10)
}
