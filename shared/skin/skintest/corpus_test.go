//go:build !race

package skintest_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	corpus, names, rejected := skintest.Corpus(), map[string]bool{}, 0
	for _, file := range corpus {
		testenv.Check(t, !names[file.Name], "two files are %s", file.Name)
		names[file.Name] = true
		if file.WantError != "" {
			rejected++
		}
		size := len(file.Data)
		testenv.Check(t, size <= skin.DefaultLimits().Bytes, "%s: %d bytes are more than the limit", file.Name, size)
		// A payload that is compressed or missing would prove nothing.
		testenv.Check(t, bytes.Contains(file.Data, []byte(file.Payload)),
			"%s: the file does not hold %q", file.Name, file.Payload)
	}
	if accepted := len(corpus) - rejected; rejected < 60 || accepted < 60 {
		t.Errorf("%d files are rejected and %d accepted; want 60 of each", rejected, accepted)
	}
}

// A bomb that does not inflate would prove nothing.
func TestBombInflates(t *testing.T) {
	t.Parallel()
	for _, file := range skintest.Corpus() {
		if file.Name != "a raster of a GiB that is sound" {
			continue
		}
		_, rest, _ := strings.Cut(string(file.Data), "IDAT")
		length := binary.BigEndian.Uint32(file.Data[len(file.Data)-len(rest)-8:])
		inflated := testenv.Must(zlib.NewReader(strings.NewReader(rest[:length])))(t)
		n, err := io.Copy(io.Discard, inflated)
		testenv.Check(t, err == nil && n >= 1<<30, "a bomb of %d bytes inflates to %d, %v", len(file.Data), n, err)
		return
	}
	t.Error("there is no bomb")
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	sheet := skin.NewSheet(64, 64)
	valid := skintest.FromSheet(sheet).File()
	if got, err := skintest.Read(valid); err != nil || !bytes.Equal(got.Pix, sheet.Pix) {
		t.Fatalf("a valid file: other pixels, or %v", err)
	}
	with := func(change func(*skintest.PNG)) []byte {
		p := skintest.FromSheet(sheet)
		change(&p)
		return p.File()
	}
	for name, file := range map[string][]byte{
		"empty":                  nil,
		"a text before":          with(func(p *skintest.PNG) { p.Before = skintest.Chunk("tEXt", nil) }),
		"a text behind":          with(func(p *skintest.PNG) { p.After = skintest.Chunk("tEXt", nil) }),
		"an interlaced file":     with(func(p *skintest.PNG) { p.Interlaced = true }),
		"a byte behind the end":  append(bytes.Clone(valid), 0),
		"a byte less":            valid[:len(valid)-1],
		"a wrong checksum":       append(bytes.Clone(valid[:len(valid)-1]), 0),
		"a byte in the raster":   skintest.Join(valid[8:33], skintest.Chunk("IDAT", append(skintest.Deflate(make([]byte, 257*64)), 0)), skintest.Chunk("IEND", nil)),
		"a row too many":         skintest.Join(valid[8:33], skintest.Chunk("IDAT", skintest.Deflate(make([]byte, 257*65))), skintest.Chunk("IEND", nil)),
		"a filter that is wrong": skintest.Join(valid[8:33], skintest.Chunk("IDAT", skintest.Deflate(bytes.Repeat([]byte{5}, 257*64))), skintest.Chunk("IEND", nil)),
	} {
		_, err := skintest.Read(file)
		testenv.Check(t, err != nil, "%s is accepted", name)
	}
}
