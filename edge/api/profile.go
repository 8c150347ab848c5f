package api

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/skin"
)

// profile answers what a player wears, in the form of CustomSkinAPI: skins by
// model and a cape, each by the hash of its file.
func (s *Server) profile(rc *fasthttp.RequestCtx, found shown, memory *scratch) (err error) {
	player := found.led.Player
	if player == nil {
		return s.absent(rc, found, fault.New(fault.NotFound, "There is no such player."))
	}
	memory.body = appendProfile(memory.body[:0], player)
	found.etag = edge.ETagOf(memory.body)
	if found.unchanged, err = held(rc, found.etag); err != nil {
		return err
	}

	header := &rc.Response.Header
	if found.unchanged {
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		header.SetContentTypeBytes(typeJSON)
		rc.Response.SetBody(memory.body)
	}
	header.SetCanonical(keyETag, found.etag[:])
	header.SetCanonical(keyCacheControl, s.cacheControl(&found))
	header.SetCanonical(keyCacheStatus, cacheStatus(found.source, found.how))
	memory.tags = appendTags(memory.tags[:0], found.want, found.led)
	if cape := player.Cape; cape != nil {
		memory.tags = appendTagID(memory.tags, "texture-", cape.TID)
	}
	s.tags.set(header, memory.tags)
	s.routes.claim(rc, profile, formatJSON, found.outcome())
	return nil
}

// appendProfile appends the JSON of a profile.
func appendProfile(dst []byte, player *mapping.Player) []byte {
	dst = append(dst, `{"username":`...)
	dst = appendJSON(dst, player.Name)
	dst = append(dst, `,"skins":{`...)
	if worn := player.Skin; worn != nil {
		model := `"default":"`
		if worn.Type == skin.Alex {
			model = `"slim":"`
		}
		dst = append(dst, model...)
		dst = worn.Hash.AppendTo(dst)
		dst = append(dst, '"')
	}
	dst = append(dst, '}')
	if worn := player.Cape; worn != nil {
		dst = append(dst, `,"cape":"`...)
		dst = worn.Hash.AppendTo(dst)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendJSON appends a text as JSON. Most names need no escaping.
func appendJSON(dst []byte, text string) []byte {
	isPlain := !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) })
	if !isPlain {
		if encoded, err := json.Marshal(text); err == nil { // which no text prevents
			return append(dst, encoded...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, text...)
	return append(dst, '"')
}
