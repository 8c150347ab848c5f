package edge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// View says what picture of which texture: all that decides the pixels. Two
// equal views are the same picture, today and in a year.
type View struct {
	Texture skin.Hash
	// File says that the stored file itself is meant. The rest is zero then.
	File bool
	render.View
}

// appendKey appends the view in a form of its own, short and without ambiguity.
func (v View) appendKey(dst []byte) []byte {
	dst = append(dst, v.Texture[:]...)
	if v.File {
		return dst
	}
	dst = append(dst, byte(v.Pose), byte(v.Type), byte(v.Format))
	return binary.BigEndian.AppendUint16(dst, uint16(v.Size))
}

// ViewKeySize is how much memory Finished needs for its use.
const ViewKeySize = len(skin.Hash{}) + 5

// ETag is a strong entity tag with its quotes.
type ETag [24]byte

// ETag returns the entity tag of a view: a digest of the view and, unless it is a
// stored file, of the renderer's revision. Together they decide every byte.
func (p *Pictures) ETag(view View) ETag {
	name := view.appendKey(make([]byte, 0, ViewKeySize+len(p.revision)))
	if !view.File {
		name = append(name, p.revision...)
	}
	return ETagOf(name)
}

// ETagOf returns the entity tag of what some bytes name, or are.
func ETagOf(name []byte) ETag {
	digest := sha256.Sum256(name)
	tag := ETag{0: '"', len(ETag{}) - 1: '"'}
	base64.RawURLEncoding.Encode(tag[1:], digest[:16])
	return tag
}
