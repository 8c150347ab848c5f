package api

import (
	"encoding/json"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// setProfile sets the body and the entity tag of a profile.
func (x *exchange) setProfile() {
	x.body = appendProfile(x.body[:0], x.response.Mapping.Player)
	x.response.Body, x.response.ETag = x.body, edge.ETagOf(x.body)
}

// appendProfile appends the JSON of a profile in the format of CustomSkinAPI: skins by model
// and a cape, each by the hash of its file.
func appendProfile(dst []byte, player *edgeproto.Player) []byte {
	dst = append(dst, `{"username":`...)
	dst = appendJSON(dst, player.Name)
	dst = append(dst, `,"skins":{`...)
	if texture := player.Skin; texture != nil {
		model := `"default":"`
		if texture.Type == skin.Slim {
			model = `"slim":"`
		}
		dst = append(dst, model...)
		dst = texture.Hash.AppendTo(dst)
		dst = append(dst, '"')
	}
	dst = append(dst, '}')
	if texture := player.Cape; texture != nil {
		dst = append(dst, `,"cape":"`...)
		dst = texture.Hash.AppendTo(dst)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendJSON appends a string as JSON. Most names need no escaping.
func appendJSON(dst []byte, text string) []byte {
	isPrintableASCII := !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) })
	if !isPrintableASCII {
		if encoded, err := json.Marshal(text); err == nil { // always, for a string
			return append(dst, encoded...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, text...)
	return append(dst, '"')
}
