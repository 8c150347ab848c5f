// Package skin defines textures: what a skin or cape sheet is, which uploads are valid, where
// each face of the player model lies on a sheet, and the digests of files and pixels.
package skin

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
)

// Hash names a texture file: the SHA-256 of its bytes as stored and served.
type Hash [sha256.Size]byte

// HashOf returns the hash of a file.
func HashOf(file []byte) Hash { return sha256.Sum256(file) }

// ParseHash parses the format of String: 64 lower-case hexadecimal digits. Upper case is
// rejected, so that a file has one name only.
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

// MarshalText encodes the hash as String does.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText decodes what MarshalText encodes.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// Value returns the bytes of the hash for a database.
func (h Hash) Value() (driver.Value, error) { return h[:], nil }

// Scan reads what Value returns. NULL is the zero Hash.
func (h *Hash) Scan(value any) error {
	digest, ok := value.([]byte)
	switch {
	case value == nil:
		*h = Hash{}
	case !ok || len(digest) != len(h):
		return fmt.Errorf("a hash is %d bytes in a database, not %T of %d", len(h), value, len(digest))
	default:
		*h = Hash(digest)
	}
	return nil
}

// Type is the type of a texture: a skin for one of the two player models, or a cape. The zero
// Type is invalid.
type Type uint8

// The types of texture, by the names of Mojang's API. The arms of Classic (Steve) are four
// units wide, arms of Slim (Alex) three.
const (
	Classic Type = iota + 1
	Slim
	Cape
)

// ParseType parses the format of String.
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

// String returns steve, alex or cape, the names in Veneer's API, and nothing for the zero
// Type.
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

// IsSkin reports whether the texture is a skin and not a cape.
func (t Type) IsSkin() bool { return t == Classic || t == Slim }

// MarshalText encodes the type as String does.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText decodes what MarshalText encodes.
func (t *Type) UnmarshalText(text []byte) (err error) {
	*t, err = ParseType(string(text))
	return err
}

// Value returns the name of the type for a database.
func (t Type) Value() (driver.Value, error) { return t.String(), nil }

// Scan reads what Value returns. NULL is the zero Type.
func (t *Type) Scan(value any) (err error) {
	name, ok := value.(string)
	switch {
	case value == nil:
		*t = 0
	case !ok:
		return fmt.Errorf("a type is text in a database, not %T", value)
	default:
		*t, err = ParseType(name)
	}
	return err
}

// Sheet is a decoded texture of Width × Height texels in rows from the top. Each texel has
// four bytes (red, green, blue, alpha; not premultiplied). The stride is 4 × Width.
type Sheet struct {
	Width, Height int
	Pix           []byte
}

// NewSheet returns a transparent black sheet.
func NewSheet(width, height int) Sheet {
	return Sheet{Width: width, Height: height, Pix: make([]byte, 4*width*height)}
}

// At returns the index in Pix of a texel's first byte.
func (s Sheet) At(x, y int) int { return 4 * (y*s.Width + x) }

// Scale returns the number of texels per classic texel in each direction: 1 for a classic
// sheet, 2 or more for an HD one.
func (s Sheet) Scale() int { return s.Width / 64 }
