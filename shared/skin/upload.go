package skin

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/veneer-skins/veneer/shared/fault"
)

// MaxScale is the largest scale of an HD sheet that any setting allows. It bounds the memory
// that one file can take.
const MaxScale = 16

// Limits bounds what ParseUpload accepts. 0 stands for no limit, except for MaxScale.
type Limits struct {
	Bytes int `env:"MAX_BYTES" envDefault:"1048576" min:"0" help:"largest texture file that is accepted, in bytes; 0 for any size"`
	Scale int `env:"MAX_SCALE" envDefault:"8" min:"0" max:"16" help:"widest HD texture that is accepted, in multiples of 64 pixels, at most 16; 0 for 16"`
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits { return Limits{Bytes: 1 << 20, Scale: 8} }

// LargestScale returns the largest scale that both the limits and MaxScale allow.
func (l Limits) LargestScale() int {
	if l.Scale < 1 {
		return MaxScale
	}
	return min(l.Scale, MaxScale)
}

// Texture is an uploaded texture in its stored form.
type Texture struct {
	Type  Type
	Sheet Sheet

	// File is the PNG that is stored and served. It has the pixels of Sheet and nothing else,
	// so it may be larger or smaller than the upload.
	File []byte
	// Hash is the hash of File.
	Hash Hash
	// Pixels is the digest of Sheet. It identifies duplicates whatever program wrote the
	// upload, and whichever version of the encoder wrote File.
	Pixels [sha256.Size]byte
}

// Digest returns the SHA-256 of the width and the height, each as four bytes in big-endian
// order, followed by Pix.
func (s Sheet) Digest() [sha256.Size]byte {
	digest := sha256.New()
	size := binary.BigEndian.AppendUint32(nil, uint32(s.Width))
	digest.Write(binary.BigEndian.AppendUint32(size, uint32(s.Height)))
	digest.Write(s.Pix)
	return [sha256.Size]byte(digest.Sum(nil))
}

// FileTooLarge returns the TooLarge fault of a file above a limit in bytes. The field "file"
// has the message, too.
func FileTooLarge(limit int) error {
	tooLarge := fault.Field("file", "The file is too large: at most %d bytes are accepted.", limit)
	tooLarge.Kind = fault.TooLarge
	return tooLarge
}

// ParseUpload decodes an uploaded PNG as the given type: steve, alex, cape, or skin for
// either model, which is then detected from the pixels. Capes of the two old sizes are padded
// to a whole sheet; all pixels are preserved.
//
// It returns a TooLarge fault for a file above the limit, and for any other invalid upload an
// Invalid fault with a message for the user about the field "type" or "file".
func ParseUpload(file []byte, as string, limits Limits) (Texture, error) {
	if limits.Bytes > 0 && len(file) > limits.Bytes {
		return Texture{}, FileTooLarge(limits.Bytes)
	}
	kind, detect := Classic, as == "skin"
	if !detect {
		var err error
		if kind, err = ParseType(as); err != nil {
			return Texture{}, fault.Field("type",
				"%q is no type of texture. Use steve, alex or cape, or skin for either of the first two.", as)
		}
	}

	var width, height int
	sheet, err := decode(file, func(w, h int) (err error) {
		width, height, err = storedSize(kind, w, h, limits.LargestScale())
		return err
	})
	if err != nil {
		return Texture{}, fault.Field("file", "The file is no texture: %v.", err)
	}
	if sheet.Width != width || sheet.Height != height {
		sheet = sheet.padded(width, height)
	}
	if detect {
		kind = DetectModel(sheet)
	}

	stored, err := sheet.PNG()
	if err != nil {
		return Texture{}, err
	}
	return Texture{Type: kind, Sheet: sheet, File: stored, Hash: HashOf(stored), Pixels: sheet.Digest()}, nil
}

// Decode returns the exact pixels of a stored texture, which has no damage. It accepts every size that
// ParseUpload may have stored, under any limits.
func Decode(file []byte) (Sheet, error) {
	_, _, err := SizeOf(file)
	if err != nil {
		return Sheet{}, fmt.Errorf("decode texture: %w", err)
	}
	sheet, err := decodeSound(file)
	if err != nil {
		return Sheet{}, fmt.Errorf("decode texture: %w", err)
	}
	return sheet, nil
}

// SizeOf returns the width and height in texels of a stored texture, from the header of its
// file. It rejects headers that Decode would reject.
func SizeOf(file []byte) (width, height int, err error) {
	head, err := readHeader(file)
	if err == nil {
		err = checkStoredSize(head.width, head.height)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read header of texture: %w", err)
	}
	return head.width, head.height, nil
}

// checkStoredSize returns an error for a size that no stored texture has.
func checkStoredSize(w, h int) error {
	if !isSheet(w, h, MaxScale) && !isSheet(w, 2*h, MaxScale) {
		return fmt.Errorf("it is %d × %d pixels, which is the size of no sheet", w, h)
	}
	return nil
}

// UploadSize is a size of pictures that ParseUpload accepts for a type, and so are its multiples.
type UploadSize struct {
	Type          Type
	Width, Height int // in pixels, at scale 1
}

// UploadSizes returns the sizes that ParseUpload accepts. Two old formats of capes are the top left
// corner of a sheet, cut to the part that programs of their time read.
func UploadSizes() []UploadSize {
	return []UploadSize{{Classic, 64, 64}, {Classic, 64, 32}, {Slim, 64, 64}, {Cape, 64, 32}, {Cape, 22, 17}, {Cape, 46, 22}}
}

// storedSize returns the size of the sheet in which a picture of w × h pixels is stored.
func storedSize(kind Type, w, h, scale int) (width, height int, err error) {
	for _, size := range UploadSizes() {
		if k := w / size.Width; size.Type == kind && k >= 1 && k <= scale && w == k*size.Width && h == k*size.Height {
			if kind == Cape {
				return 64 * k, 32 * k, nil
			}
			return w, h, nil
		}
	}
	sizes := map[Type]string{
		Classic: "a skin has 64 × 64 or 64 × 32", Slim: "a skin with slim arms has 64 × 64", Cape: "a cape has 64 × 32, 22 × 17 or 46 × 22",
	}[kind]
	if scale > 1 {
		sizes += fmt.Sprintf(", or a multiple of that up to %d times", scale)
	}
	return 0, 0, fmt.Errorf("it is %d × %d pixels; %s", w, h, sizes)
}

// isSheet reports whether w × h is a square of 64 texels times 1 to scale.
func isSheet(w, h, scale int) bool {
	return w == h && w%64 == 0 && w >= 64 && w <= 64*scale
}
