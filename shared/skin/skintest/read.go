package skintest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Read returns the pixels of a stored texture. It is not a general decoder: it accepts only
// the stored format, 8 bits of red, green, blue and alpha, and rejects a file with anything
// besides its pixels.
func Read(file []byte) (skin.Sheet, error) {
	rest, ok := bytes.CutPrefix(file, []byte(Signature))
	if !ok {
		return skin.Sheet{}, fmt.Errorf("it begins with %.8q", file)
	}
	var header, stream []byte
	for previous := ""; previous != "IEND"; {
		if len(rest) < 12 || int64(binary.BigEndian.Uint32(rest)) > int64(len(rest)-12) {
			return skin.Sheet{}, fmt.Errorf("it is cut off behind %q", previous)
		}
		kind, end := string(rest[4:8]), 8+int(binary.BigEndian.Uint32(rest))
		data, sum := rest[8:end], binary.BigEndian.Uint32(rest[end:])
		if crc32.ChecksumIEEE(rest[4:end]) != sum {
			return skin.Sheet{}, fmt.Errorf("the checksum of %q is wrong", kind)
		}
		switch next := previous + " " + kind; {
		case next == " IHDR" && len(data) == 13:
			header = data
		case next == "IHDR IDAT" || next == "IDAT IDAT":
			stream = append(stream, data...)
		case next == "IDAT IEND" && len(data) == 0:
		default:
			return skin.Sheet{}, fmt.Errorf("there are %d bytes of %q behind %q", len(data), kind, previous)
		}
		previous, rest = kind, rest[end+4:]
	}
	if len(rest) > 0 {
		return skin.Sheet{}, fmt.Errorf("%d bytes follow its end", len(rest))
	}
	if form := string(header[8:]); form != "\x08\x06\x00\x00\x00" {
		return skin.Sheet{}, fmt.Errorf("its header ends in %q", form)
	}
	return readRaster(stream, int(binary.BigEndian.Uint32(header)), int(binary.BigEndian.Uint32(header[4:])))
}

// readRaster returns the sheet in a zlib stream, which must contain nothing else.
func readRaster(stream []byte, width, height int) (skin.Sheet, error) {
	if width < 1 || width > 64*skin.MaxScale || height < 1 || height > 64*skin.MaxScale {
		return skin.Sheet{}, fmt.Errorf("it is %d × %d pixels", width, height)
	}
	source := bytes.NewReader(stream)
	inflated, err := zlib.NewReader(source)
	if err != nil {
		return skin.Sheet{}, err
	}
	length := 1 + 4*width
	raster, err := io.ReadAll(io.LimitReader(inflated, int64(length*height+1)))
	if err != nil {
		return skin.Sheet{}, err
	}
	if len(raster) != length*height || source.Len() > 0 {
		return skin.Sheet{}, fmt.Errorf("its raster has %d bytes and %d behind them; want %d and none", len(raster), source.Len(), length*height)
	}
	sheet := skin.NewSheet(width, height)
	above := make([]byte, 4*width)
	for y := range height {
		row := raster[y*length+1 : (y+1)*length]
		if err := unfilter(raster[y*length], row, above); err != nil {
			return skin.Sheet{}, err
		}
		copy(sheet.Pix[4*width*y:], row)
		above = row
	}
	return sheet, nil
}

// unfilter removes the filter of a row with four bytes a pixel.
func unfilter(filter byte, row, above []byte) error {
	if filter > 4 {
		return fmt.Errorf("a row has filter %d", filter)
	}
	for i := range row {
		var left, corner byte
		if i >= 4 {
			left, corner = row[i-4], above[i-4]
		}
		row[i] += predict(filter, left, above[i], corner)
	}
	return nil
}

// predict returns a filter's prediction of a byte from its neighbours.
func predict(filter, left, above, corner byte) byte {
	switch filter {
	case 1:
		return left
	case 2:
		return above
	case 3:
		return byte((int(left) + int(above)) / 2)
	case 4:
		return paeth(left, above, corner)
	default:
		return 0
	}
}

// paeth is the Paeth predictor: the neighbour that is nearest to left + above - corner.
func paeth(left, above, corner byte) byte {
	distance := func(to byte) int {
		d := int(left) + int(above) - int(corner) - int(to)
		return max(d, -d)
	}
	switch l, a, c := distance(left), distance(above), distance(corner); {
	case l <= a && l <= c:
		return left
	case a <= c:
		return above
	default:
		return corner
	}
}
