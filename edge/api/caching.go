package api

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/mapping"
)

const headerCacheStatus = "Cache-Status"

// Cache-Control, by what may change behind an address. A tid or a hash leads
// elsewhere only when a texture is deleted; a name whenever its player likes.
const (
	cacheByTexture = "public, max-age=86400, stale-while-revalidate=86400, stale-if-error=604800"
	cacheNotFound  = "public, max-age=15"
)

func cacheByName(shared time.Duration) string {
	sMaxage := ""
	if shared > 0 {
		sMaxage = fmt.Sprintf(", s-maxage=%d", shared/time.Second)
	}
	return "public, max-age=60" + sMaxage + ", stale-while-revalidate=600, stale-if-error=86400"
}

func (s *Server) cacheControl(about subject) string {
	if about.way == byTID || about.way == byHash {
		return cacheByTexture
	}
	return s.byName
}

// The values of Cache-Status (RFC 9211) that do not depend on what was found.
const (
	statusAside  = "veneer; fwd=bypass" // memory has nothing to do with it
	statusFailed = "veneer; fwd=miss"   // asked for elsewhere, but not got
)

// cacheStatus says whether an answer came from memory.
func cacheStatus(source edge.Source, drawn bool) string {
	switch {
	case source == edge.Stale:
		return "veneer; fwd=stale"
	case drawn || source == edge.Asked:
		return "veneer; fwd=miss; stored"
	default:
		return "veneer; hit"
	}
}

// matches reports whether the entity tag is among those of If-None-Match, by the
// weak comparison that RFC 9110 demands there.
func matches(lines [][]byte, etag string) bool {
	for _, line := range lines {
		for candidate := range bytes.SplitSeq(line, []byte(",")) {
			candidate = bytes.TrimSpace(candidate)
			if string(candidate) == "*" || string(bytes.TrimPrefix(candidate, []byte("W/"))) == etag {
				return true
			}
		}
	}
	return false
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
		return fmt.Errorf("%q is none of off, surrogate-key, cache-tag and both", text)
	}
	return nil
}

func (t Tags) set(header *fasthttp.ResponseHeader, tags []string) {
	if len(tags) == 0 {
		return
	}
	if t&SurrogateKey != 0 {
		header.Set("Surrogate-Key", strings.Join(tags, " "))
	}
	if t&CacheTag != 0 {
		header.Set("Cache-Tag", strings.Join(tags, ","))
	}
}

// presenceTags returns what a picture depends on. Never a hash: it would give
// private files away.
func presenceTags(key mapping.Key, led mapping.Mapping, revision string) []string {
	return append(tagsOf(key, led), "render-"+revision)
}

// absenceTags returns what the absence of a picture depends on.
func absenceTags(key mapping.Key, led mapping.Mapping) []string {
	tags := tagsOf(key, led)
	if name, ok := strings.CutPrefix(string(key), mapping.NamePrefix); ok {
		// Escaped, as anything can stand in a path.
		tags = append(tags, "name-"+url.PathEscape(name))
	}
	return tags
}

// tagsOf returns tags for a key and for all on the way from it to a texture.
func tagsOf(key mapping.Key, led mapping.Mapping) []string {
	var tags []string
	tag := func(kind string, id int64) { tags = append(tags, kind+strconv.FormatInt(id, 10)) }

	// Users and textures have tags also while they do not exist.
	uid, isUser := strings.CutPrefix(string(key), mapping.UIDPrefix)
	tid, isTexture := strings.CutPrefix(string(key), mapping.TIDPrefix)
	switch {
	case isUser:
		tags = append(tags, "user-"+uid)
		if led.User != nil && led.User.Avatar != 0 {
			tag("texture-", led.User.Avatar)
		}
	case isTexture:
		tags = append(tags, "texture-"+tid)
	case led.Player != nil:
		tag("player-", led.Player.PID)
		if led.Player.Skin != nil {
			tag("texture-", led.Player.Skin.TID)
		}
	case led.Texture != nil:
		tag("texture-", led.Texture.TID)
	}
	return tags
}
