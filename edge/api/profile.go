package api

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// setProfile sets the body and the entity tag of a profile.
func (e *exchange) setProfile() {
	mapping := &e.response.Mapping
	switch e.route.view.Profile {
	case edge.CustomSkinAPI:
		e.body = appendCustomSkinProfile(e.body[:0], mapping.Player)
	case edge.UniSkinAPI:
		e.body = appendUniSkinProfile(e.body[:0], mapping.Player, mapping.Modified)
	case edge.NoProfile: // of no view of this kind
	}
	e.response.Body, e.response.ETag = e.body, edge.ETagOf(e.body)
}

// appendCustomSkinProfile appends the JSON of a profile in the format of CustomSkinAPI, with the
// fields of both revisions: skins and cape of revision 1, textures of revision 2.
func appendCustomSkinProfile(dst []byte, player *edgeproto.Player) []byte {
	dst = append(dst, `{"username":`...)
	dst = appendJSON(dst, player.Name)
	dst = append(dst, `,"skins":{`...)
	dst = appendSkins(dst, player.Skin)
	dst = append(dst, '}')
	if player.Cape != nil {
		dst = appendCape(append(dst, ','), player.Cape)
	}
	dst = append(dst, `,"textures":{`...)
	dst = appendSkins(dst, player.Skin)
	if player.Cape != nil {
		if player.Skin != nil {
			dst = append(dst, ',')
		}
		dst = appendCape(dst, player.Cape)
	}
	return append(dst, "}}"...)
}

// appendUniSkinProfile appends the JSON of a profile in the format of UniSkinAPI. Its mod fails
// without an array and an object, so these may be empty.
func appendUniSkinProfile(dst []byte, player *edgeproto.Player, modified int64) []byte {
	dst = append(dst, `{"player_name":`...)
	dst = appendJSON(dst, player.Name)
	dst = strconv.AppendInt(append(dst, `,"last_update":`...), modified, 10)
	switch {
	case player.Skin == nil:
		dst = append(dst, `,"model_preference":[]`...)
	case player.Skin.Type == skin.Slim:
		dst = append(dst, `,"model_preference":["slim","default"]`...)
	default:
		dst = append(dst, `,"model_preference":["default"]`...)
	}
	dst = append(dst, `,"skins":{`...)
	dst = appendSkins(dst, player.Skin)
	dst = append(dst, '}')
	if player.Cape != nil {
		dst = appendCape(append(dst, ','), player.Cape)
	}
	return append(dst, '}')
}

// appendSkins appends the names of the files of a skin by model, the preferred one first. Games
// without the slim model would draw the arms of a slim skin wrong, so they get a legacy sheet
// for the default model.
func appendSkins(dst []byte, texture *edgeproto.Texture) []byte {
	switch {
	case texture == nil:
		return dst
	case texture.Type == skin.Slim:
		dst = texture.Hash.AppendTo(append(dst, `"slim":"`...))
		dst = edge.LegacyTexture(append(dst, `","default":"`...), texture.Hash)
	default:
		dst = texture.Hash.AppendTo(append(dst, `"default":"`...))
	}
	return append(dst, '"')
}

// appendCape appends the name of the file of a cape.
func appendCape(dst []byte, texture *edgeproto.Texture) []byte {
	return append(texture.Hash.AppendTo(append(dst, `"cape":"`...)), '"')
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
