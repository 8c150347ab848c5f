package libwebp_test

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"testing"

	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Decoding returns the encoded pixels, under alpha 0 too, at all settings.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	for _, size := range [][2]int{{1, 1}, {1, 40}, {40, 1}, {7, 13}, {64, 64}, {129, 33}} {
		width, height := size[0], size[1]
		want := skintest.Noise(uint64(width), width, height).Pix
		for method := range 7 {
			for _, quality := range []int{0, 20, 75, 100} {
				file := encode(t, want, width, height, method, quality)
				got, w, h, err := libwebp.Decode(file)
				if err != nil || w != width || h != height || !bytes.Equal(got, want) {
					t.Errorf("%d × %d pixels, method %d, quality %d: decoded as %d × %d other pixels, or %v",
						width, height, method, quality, w, h, err)
				}
			}
		}
	}
}

// A file is a header and one chunk with the pixels.
func TestFilesHoldPixelsOnly(t *testing.T) {
	t.Parallel()
	file := encode(t, skintest.Noise(1, 9, 9).Pix, 9, 9, 1, 20)
	length := int(binary.LittleEndian.Uint32(file[16:]))
	testenv.Check(t, string(file[:4]) == "RIFF" && string(file[8:16]) == "WEBPVP8L" && len(file) == 20+length+length%2,
		"a file of %d bytes begins with %q; want one VP8L chunk", len(file), file[:20])
}

func TestEncodeRejects(t *testing.T) {
	t.Parallel()
	f := func(bytes, width, height, method, quality int) {
		t.Helper()
		if _, err := libwebp.Encode(make([]byte, bytes), width, height, method, quality); err == nil {
			t.Errorf("Encode(%d bytes, %d, %d, %d, %d) returns no error", bytes, width, height, method, quality)
		}
	}

	f(0, 0, 0, 1, 20)
	f(4, -1, -1, 1, 20)
	f(15, 2, 2, 1, 20)
	f(17, 2, 2, 1, 20)
	f(4<<14, 1<<14, 1, 1, 20)
	f(4<<14, 1, 1<<14, 1, 20)
	f(4, 1, 1, 7, 20)
	f(4, 1, 1, -1, 20)
	f(4, 1, 1, 1, 101)
	f(4, 1, 1, 1, -1)
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	whole := encode(t, skintest.Noise(1, 16, 16).Pix, 16, 16, 1, 20)
	for name, file := range map[string][]byte{
		"nothing":     nil,
		"text":        []byte("a picture of a cat"),
		"a cut file":  whole[:len(whole)/2],
		"a bare head": whole[:25],
	} {
		_, _, _, err := libwebp.Decode(file)
		testenv.Check(t, err != nil, "Decode accepts %s", name)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := libwebp.Version()
	testenv.Check(t, regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(got), "Version: %q; want three numbers", got)
}

func encode(tb testing.TB, pix []byte, width, height, method, quality int) []byte {
	tb.Helper()
	return testenv.Must(libwebp.Encode(pix, width, height, method, quality))(tb)
}
