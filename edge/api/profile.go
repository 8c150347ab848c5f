package api

import (
	"encoding/json"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// setProfile puts together what a player wears, in the form of CustomSkinAPI: skins by
// model and a cape, each by the hash of its file.
func (res *response) setProfile(scratch *requestScratch) error {
	player := res.mapping.Player
	if player == nil {
		return fault.New(fault.NotFound, "There is no such player.")
	}
	scratch.body = appendProfile(scratch.body[:0], player)
	res.body, res.etag = scratch.body, edge.ETagOf(scratch.body)
	return nil
}

// appendProfile appends the JSON of a profile.
func appendProfile(dst []byte, player *edgeproto.Player) []byte {
	dst = append(dst, `{"username":`...)
	dst = appendJSON(dst, player.Name)
	dst = append(dst, `,"skins":{`...)
	if worn := player.Skin; worn != nil {
		model := `"default":"`
		if worn.Type == skin.Slim {
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
