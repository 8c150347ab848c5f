// Package skin is the vocabulary of textures: what a skin or cape sheet is,
// which files are valid, where each face of the model lies on the sheet, and
// how files and pixels are named by their digests.
package skin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash names a texture file: the SHA-256 of its bytes as stored and served.
type Hash [sha256.Size]byte

// HashOf returns the hash of a file.
func HashOf(file []byte) Hash { return sha256.Sum256(file) }

// ParseHash reads the form that String writes: 64 lower-case hexadecimal
// digits. Upper case is refused, so that a file has one name only.
func ParseHash(text string) (Hash, error) {
	var hash Hash
	if len(text) != 2*len(hash) {
		return Hash{}, fmt.Errorf("a hash has %d digits, not %d", 2*len(hash), len(text))
	}
	for i := range len(text) {
		var digit byte
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c && c <= 'f':
			digit = c - 'a' + 10
		default:
			return Hash{}, fmt.Errorf("%q is no lower-case hexadecimal digit", c)
		}
		hash[i/2] = hash[i/2]<<4 | digit
	}
	return hash, nil
}

// String returns the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// AppendTo appends to dst what String returns.
func (h Hash) AppendTo(dst []byte) []byte { return hex.AppendEncode(dst, h[:]) }

// MarshalText writes the hash as String does.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// Type is what a texture is for: a skin of one of the two player models, or a
// cape. The zero Type is none of them.
type Type uint8

// The types of texture. Steve's arms are four units wide, Alex's three.
const (
	Classic Type = iota + 1
	Slim
	Cape
)

// ParseType reads the form that String writes.
func ParseType(text string) (Type, error) {
	switch text {
	case "steve":
		return Classic, nil
	case "alex":
		return Slim, nil
	case "cape":
		return Cape, nil
	default:
		return 0, fmt.Errorf("%q is none of steve, alex and cape", text)
	}
}

// String returns steve, alex or cape, and nothing for the zero Type.
func (t Type) String() string {
	switch t {
	case Classic:
		return "steve"
	case Slim:
		return "alex"
	case Cape:
		return "cape"
	default:
		return ""
	}
}

// IsSkin reports whether a player wears the texture as a skin.
func (t Type) IsSkin() bool { return t == Classic || t == Slim }

// MarshalText writes the type as String does.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (t *Type) UnmarshalText(text []byte) (err error) {
	*t, err = ParseType(string(text))
	return err
}

// Sheet is a decoded texture: Width × Height texels in rows from the top, four
// bytes a texel (red, green, blue, alpha; not premultiplied), the stride being
// exactly 4 × Width.
type Sheet struct {
	Width, Height int
	Pix           []byte
}

// NewSheet returns a transparent black sheet.
func NewSheet(width, height int) Sheet {
	return Sheet{Width: width, Height: height, Pix: make([]byte, 4*width*height)}
}

// At returns the index in Pix of the texel's first byte.
func (s Sheet) At(x, y int) int { return 4 * (y*s.Width + x) }

// Scale returns how many texels a sheet has for each of the classic 64 columns:
// 1 for a classic sheet, 2 or more for an HD one.
func (s Sheet) Scale() int { return s.Width / 64 }
