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
func (s *Server) profile(rc *fasthttp.RequestCtx, want edge.Want, led mapping.Mapping, source edge.Source, memory *scratch) error {
	if led.Player == nil {
		return s.absent(rc, want, led, source, fault.New(fault.NotFound, "There is no such player."))
	}
	memory.body = appendProfile(memory.body[:0], led.Player)

	header, how := &rc.Response.Header, hit
	if source == edge.Asked {
		how = rendered
	}
	etag := edge.ETagOf(memory.body)
	unchanged, err := held(rc, etag)
	if err != nil {
		return err
	}
	if unchanged {
		how = notModified
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		header.SetContentTypeBytes(typeJSON)
		rc.Response.SetBody(memory.body)
	}
	header.SetCanonical(keyETag, etag[:])
	header.SetCanonical(keyCacheControl, s.byName)
	header.SetCanonical(keyCacheStatus, cacheStatus(source, edge.Hit))
	memory.tags = appendTags(memory.tags[:0], want, led)
	if cape := led.Player.Cape; cape != nil {
		memory.tags = appendTagID(memory.tags, "texture-", cape.TID)
	}
	s.tags.set(header, memory.tags)
	s.routes.claim(rc, profile, formatJSON, how)
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
