package raster

// Picture is a drawn picture: Width × Height pixels in rows from the top, four bytes a pixel
// (red, green, blue, alpha; not premultiplied), the stride being exactly 4 × Width. A pixel
// with alpha 0 is black.
type Picture struct {
	Width, Height int
	Pix           []byte
}

// NewPicture returns a picture in the memory of pixels, with its old content, if that is large
// enough; otherwise in new memory.
func NewPicture(width, height int, pixels []byte) Picture {
	size := 4 * width * height
	if cap(pixels) < size {
		pixels = make([]byte, size)
	}
	return Picture{Width: width, Height: height, Pix: pixels[:size]}
}

// Row returns the bytes of width pixels.
func (p Picture) Row(left, y, width int) []byte {
	return p.Pix[4*(y*p.Width+left):][:4*width]
}
