package edge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// View is a texture and everything else that decides the pixels of a picture. Equal views
// are the same picture at any time.
type View struct {
	Texture skin.Hash
	// File means the stored file and not a picture. All other fields but Texture are zero.
	File bool
	render.View
}

// appendKey appends the cache key of the view, which no other view has.
func (v View) appendKey(dst []byte) []byte {
	dst = append(dst, v.Texture[:]...)
	if v.File {
		return dst
	}
	dst = append(dst, byte(v.Pose), byte(v.Type), byte(v.Format))
	return binary.BigEndian.AppendUint16(dst, uint16(v.Size))
}

// viewKeySize is the length of the longest cache key of a view.
const viewKeySize = cache.MaxKeySize

// ETag is a strong entity tag with its quotes.
type ETag [24]byte

// etag returns the entity tag of a view: a digest of the view and, unless it is a stored
// file, of the renderer's revision. Together these decide every byte.
func (p *Pictures) etag(view View) ETag {
	key := view.appendKey(make([]byte, 0, viewKeySize+len(p.revision)))
	if !view.File {
		key = append(key, p.revision...)
	}
	return ETagOf(key)
}

// ETagOf returns the entity tag of a body, or of a key that decides the body.
func ETagOf(key []byte) ETag {
	digest := sha256.Sum256(key)
	tag := ETag{0: '"', len(ETag{}) - 1: '"'}
	base64.RawURLEncoding.Encode(tag[1:], digest[:16])
	return tag
}
