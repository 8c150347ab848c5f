// Package prefix has what DEFLATE (RFC 1951) and lossless WebP (RFC 9649) have in common: bits
// packed from the lowest up, canonical prefix codes of limited length, and the run-length coded
// description of such a code.
package prefix

import "encoding/binary"

// Writer packs bits into bytes, the first into the lowest bit. The zero Writer
// is empty and ready.
type Writer struct {
	bytes   []byte
	pending uint64 // bits of the incomplete byte, and zeros above them
	count   uint   // number of these bits, below 8 between calls of Write
}

// Reset makes the writer append to dst from now on.
func (w *Writer) Reset(dst []byte) { *w = Writer{bytes: dst} }

// Write writes the lowest bits of value, up to 56. The bits above them must be 0.
func (w *Writer) Write(value uint64, bits uint) {
	w.pending |= value << w.count
	w.count += bits
	w.bytes = binary.LittleEndian.AppendUint64(w.bytes, w.pending)
	whole := w.count / 8
	w.bytes = w.bytes[:len(w.bytes)-8+int(whole)]
	w.pending >>= 8 * whole
	w.count %= 8
}

// Bytes pads the last byte with zeros and returns dst of Reset with everything written since.
// The next Write starts at a whole byte.
func (w *Writer) Bytes() []byte {
	if w.count > 0 {
		w.bytes = append(w.bytes, byte(w.pending))
		w.pending, w.count = 0, 0
	}
	return w.bytes
}
