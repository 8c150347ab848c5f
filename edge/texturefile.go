package edge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// textureFile is a texture's file, which the first worker that needs it decodes: decoding
// takes longer than rendering an avatar. The width, on which the cost of rendering depends,
// is known before.
type textureFile struct {
	hash          skin.Hash
	width, height int // in texels
	fileBytes     int

	mu    sync.Mutex // held while decoding
	file  []byte     // nil once it is decoded
	sheet skin.Sheet
	err   error
}

// newTextureFile returns the texture in a file. It reads the size only.
func newTextureFile(hash skin.Hash, file []byte) (*textureFile, error) {
	width, height, err := skin.SizeOf(file)
	if err != nil {
		return nil, err
	}
	return &textureFile{hash: hash, width: width, height: height, fileBytes: cap(file), file: file}, nil
}

// decodedTextureFile returns the texture of a decoded sheet.
func decodedTextureFile(sheet skin.Sheet) *textureFile {
	return &textureFile{width: sheet.Width, height: sheet.Height, sheet: sheet}
}

// size returns how many bytes the texture takes at most, before it is decoded and after.
func (t *textureFile) size() int { return max(t.fileBytes, 4*t.width*t.height) }

// decodeCost estimates how long it takes to decode the texture: 0 if that has been done.
func (t *textureFile) decodeCost() time.Duration {
	// Noise takes longest: 33 ns a texel on the machine that docs/benchmarks.md names.
	const perTexel = 33 * time.Nanosecond
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return 0
	}
	return time.Duration(t.width*t.height) * perTexel
}

// decode returns the sheet. The time that decoding takes counts for a view.
func (t *textureFile) decode(ctx context.Context, variant Variant) (sheet skin.Sheet, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return t.sheet, t.err
	}
	start := time.Now()
	_, span := tracing.Start(ctx, stageNames[decoding])
	defer tracing.End(span, &err)
	if t.sheet, err = skin.Decode(t.file); err != nil {
		// The hash of the file is right, so core has stored a broken one: an internal error.
		t.err = fmt.Errorf("texture %s: %w", t.hash, err)
	} else {
		variant.observeStage(decoding, time.Since(start))
	}
	t.file = nil
	return t.sheet, t.err
}
