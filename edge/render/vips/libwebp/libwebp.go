// Package libwebp calls libwebp directly, without libvips, for lossless WebP: one cgo call a
// picture, and nothing but pixels in the file. Benchmarks compare with it, and tests decode
// with it.
package libwebp

/*
#cgo pkg-config: libwebp
#cgo noescape encode_lossless
#cgo nocallback encode_lossless
#cgo noescape decode_into
#cgo nocallback decode_into

#include <webp/decode.h>
#include <webp/encode.h>

typedef struct {
	uint8_t *data; // for WebPFree, also after an error
	size_t size;
	int error; // a WebPEncodingError
} encoded;

// encode_lossless does all of an encoding in one crossing from Go.
static encoded encode_lossless(const uint8_t *rgba, int width, int height, int method, int quality) {
	encoded file = {NULL, 0, VP8_ENC_ERROR_INVALID_CONFIGURATION};
	WebPConfig config;
	WebPPicture picture;
	WebPMemoryWriter writer;
	if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) {
		return file; // the headers are not the library's
	}
	config.lossless = 1;
	config.exact = 1;
	config.method = method;
	config.quality = quality;

	WebPMemoryWriterInit(&writer);
	picture.use_argb = 1;
	picture.width = width;
	picture.height = height;
	picture.writer = WebPMemoryWrite;
	picture.custom_ptr = &writer;
	file.error = VP8_ENC_OK;
	if (!WebPPictureImportRGBA(&picture, rgba, 4 * width) || !WebPEncode(&config, &picture)) {
		file.error = picture.error_code;
	}
	WebPPictureFree(&picture);
	file.data = writer.mem;
	file.size = writer.size;
	return file;
}

static int decode_into(const uint8_t *file, size_t size, uint8_t *rgba, size_t length, int stride) {
	return WebPDecodeRGBAInto(file, size, rgba, length, stride) != NULL;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Encode returns the WebP file of width × height pixels: rows from the top, four bytes a pixel
// (red, green, blue, alpha; not premultiplied), the stride being exactly 4 × width. Every pixel
// is kept, the colours of transparent ones included.
//
// Method, 0 to 6, and quality, 0 to 100, are the effort: more of either takes longer and mostly
// makes the file smaller. Method 4 and quality 75 are what cwebp -exact -z 6 uses, method 6 and
// quality 100 -z 9; without -exact cwebp's files may be a little smaller, because cwebp then
// chooses the colours of transparent pixels. Sides of more than 16383 pixels, or settings out
// of range, are an error.
func Encode(pix []byte, width, height, method, quality int) ([]byte, error) {
	const most = 1<<14 - 1 // pixels either way; WebP's own bound
	if width < 1 || height < 1 || width > most || height > most || len(pix) != 4*width*height {
		return nil, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be encoded as WebP", width, height, len(pix))
	}
	file := C.encode_lossless((*C.uint8_t)(&pix[0]), C.int(width), C.int(height), C.int(method), C.int(quality))
	defer C.WebPFree(unsafe.Pointer(file.data))
	if file.error != C.VP8_ENC_OK {
		return nil, fmt.Errorf("encode WebP with method %d, quality %d: libwebp's error %d", method, quality, file.error)
	}
	return C.GoBytes(unsafe.Pointer(file.data), C.int(file.size)), nil
}

// Decode decodes a WebP file of any kind except animations. The pixels are as Encode takes
// them.
func Decode(file []byte) (pix []byte, width, height int, err error) {
	if len(file) == 0 {
		return nil, 0, 0, errors.New("an empty file is not WebP")
	}
	data, size := (*C.uint8_t)(&file[0]), C.size_t(len(file))
	var w, h C.int
	if C.WebPGetInfo(data, size, &w, &h) == 0 {
		return nil, 0, 0, errors.New("the file is not WebP")
	}
	pix = make([]byte, 4*int(w)*int(h))
	if C.decode_into(data, size, (*C.uint8_t)(&pix[0]), C.size_t(len(pix)), 4*w) == 0 {
		return nil, 0, 0, fmt.Errorf("decode WebP of %d × %d pixels: the file is broken", w, h)
	}
	return pix, int(w), int(h), nil
}

// Version returns the version of libwebp's encoder, such as 1.2.4.
func Version() string {
	version := C.WebPGetEncoderVersion()
	return fmt.Sprintf("%d.%d.%d", version>>16, version>>8&0xff, version&0xff)
}
