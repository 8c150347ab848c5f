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
	render.View
}

// name returns the view in a form of its own, short and without ambiguity.
func (v View) name() string {
	name := make([]byte, 0, len(v.Texture)+5)
	name = append(name, v.Texture[:]...)
	name = append(name, byte(v.Pose), byte(v.Type), byte(v.Format))
	name = binary.BigEndian.AppendUint16(name, uint16(v.Size))
	return string(name)
}

// ETag returns the strong entity tag of a view, with its quotes: a digest of the
// view and of the renderer's revision, which together decide every byte.
func (p *Pictures) ETag(view View) string {
	digest := sha256.Sum256([]byte(view.name() + p.revision))
	return `"` + base64.RawURLEncoding.EncodeToString(digest[:16]) + `"`
}
