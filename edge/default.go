package edge

import (
	"strings"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// DefaultSkin is what a picture, or the file of a skin, by name, UUID or uid shows if there is no such player or user, or
// no skin of it.
type DefaultSkin uint8

// The defaults.
const (
	DefaultForUsers DefaultSkin = iota // the classic default skin for a user without an avatar, else nothing
	DefaultNone
	DefaultAvatar // the default skin, of the model that the game gives the UUID
	DefaultClassic
	DefaultSlim
)

// defaultSheet is the sheet of the default avatar of a model. It is not in the object store, so the
// digest of its pixels is used in place of the hash of a file.
type defaultSheet struct {
	sheet skin.Sheet
	hash  skin.Hash
}

// newDefaultSheets returns the default skins by model, made from the classic one.
func newDefaultSheets(classic skin.Sheet) (all [skin.Slim + 1]defaultSheet) {
	slim := classic.WithSlimArms()
	all[skin.Classic] = defaultSheet{classic, classic.Digest()}
	all[skin.Slim] = defaultSheet{slim, slim.Digest()}
	return all
}

// defaultSheet returns the default skin with a hash, nil if none has it.
func (p *Pictures) defaultSheet(hash skin.Hash) *defaultSheet {
	for _, model := range []skin.Type{skin.Classic, skin.Slim} {
		if sheet := &p.defaultSheets[model]; hash == sheet.hash {
			return sheet
		}
	}
	return nil
}

// hasDefault reports whether the request has a picture although its mapping has no skin.
func (r *Request) hasDefault(mapping edgeproto.Mapping) bool {
	key := string(r.Key)
	isTexture := strings.HasPrefix(key, edgeproto.TIDPrefix) || strings.HasPrefix(key, edgeproto.HashPrefix)
	switch r.DefaultSkin {
	case DefaultForUsers:
		// A page with the avatars of many users need not know which of them are deleted or have
		// none.
		isUser := key == "" || strings.HasPrefix(key, edgeproto.UIDPrefix)
		return isUser && (mapping.User == nil || mapping.User.Avatar == 0)
	case DefaultAvatar, DefaultClassic, DefaultSlim:
		return !isTexture || mapping.Texture != nil // which is a cape
	case DefaultNone:
	}
	return false
}

// defaultModel returns the model of the request's default avatar.
func (r *Request) defaultModel(mapping edgeproto.Mapping) skin.Type {
	switch {
	case r.Model != 0:
		return r.Model
	case r.DefaultSkin == DefaultSlim:
		return skin.Slim
	case r.DefaultSkin != DefaultAvatar:
		return skin.Classic
	case mapping.Player != nil:
		return DefaultModel(mapping.Player.UUID)
	}
	if uuid, ok := strings.CutPrefix(string(r.Key), edgeproto.UUIDPrefix); ok {
		return DefaultModel(uuid)
	}
	return skin.Classic
}

// DefaultModel returns the model of the default skin that the game shows for a UUID, in its
// canonical form: of its eighteen default skins since version 1.19.3 the first nine are slim, and
// Java's hashCode of the UUID modulo eighteen chooses one.
func DefaultModel(uuid string) skin.Type {
	var hash, word uint32
	digits := 0
	for _, c := range []byte(uuid) {
		switch {
		case '0' <= c && c <= '9':
			word = word<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			word = word<<4 | uint32(c-'a'+10)
		default:
			continue
		}
		if digits++; digits%8 == 0 {
			hash ^= word
		}
	}
	const skins, slim = 18, 9
	if (int64(int32(hash))%skins+skins)%skins < slim {
		return skin.Slim
	}
	return skin.Classic
}
