package edge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Variant is a texture and everything else that decides the pixels of a picture. Equal variants
// are the same picture at any time.
type Variant struct {
	Texture skin.Hash
	// File means the stored file and not a picture. All other fields but Texture are zero.
	File bool
	// Worn is the texture of the cape or elytra that the figure wears, if View.Wear says so.
	Worn skin.Hash
	render.View
}

// appendKey appends the cache key of the variant, which no other variant has.
func (v Variant) appendKey(dst []byte) []byte {
	dst = append(dst, v.Texture[:]...)
	if v.File {
		return dst
	}
	dst = append(dst, byte(v.Mode), byte(v.Type), byte(v.Format))
	dst = binary.BigEndian.AppendUint16(dst, uint16(v.Size))
	// The length of the key tells which of the fields below it has.
	isPosed := v.Pose != render.Stand || v.Wear != render.WearNothing || v.Exact|v.Width|int(v.Background) != 0
	if v.Attitude == 0 && v.Omit == 0 && !isPosed {
		return dst
	}
	dst = append(dst, byte(v.Attitude), byte(v.Omit))
	if !isPosed {
		return dst
	}
	dst = append(dst, byte(v.Pose)<<4|byte(v.Wear))
	if v.Background != 0 { // of a mode without exact sizes
		dst = append(dst, byte(v.Background>>16), byte(v.Background>>8), byte(v.Background))
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(v.Exact))
	}
	if v.Wear != render.WearNothing {
		dst = append(dst, v.Worn[:]...)
	}
	if v.Width != 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(v.Width))
	}
	return dst
}

// isRare reports whether the picture is one of very many of its texture, each requested seldom.
func (v Variant) isRare() bool { return v.Attitude != 0 || v.Pose != render.Stand }

// variantKeySize is the length of the longest cache key of a variant.
const variantKeySize = cache.MaxKeySize

// ETag is a strong entity tag with its quotes.
type ETag [24]byte

// etag returns the entity tag of a variant: a digest of the variant and of the renderer's revision, which is empty
// for a stored file. Together these decide every byte.
func (v Variant) etag(revision string) ETag {
	return ETagOf(append(v.appendKey(make([]byte, 0, variantKeySize+len(revision))), revision...))
}

// ETagOf returns the entity tag of a body, or of a key that decides the body.
func ETagOf(key []byte) ETag {
	digest := sha256.Sum256(key)
	tag := ETag{0: '"', len(ETag{}) - 1: '"'}
	base64.RawURLEncoding.Encode(tag[1:], digest[:16])
	return tag
}
