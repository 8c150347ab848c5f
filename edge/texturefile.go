package edge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// textureFile is a texture's file, which the first worker decodes that draws it: that takes
// longer than drawing an avatar. Its size is known before, and so what drawing costs.
type textureFile struct {
	width, height int // in texels
	fileBytes     int

	mu    sync.Mutex // held while it is being decoded
	file  []byte     // nil once it is decoded
	sheet skin.Sheet
	err   error
}

// newTextureFile returns the texture in a file.
func newTextureFile(file []byte) (*textureFile, error) {
	width, height, err := skin.SizeOf(file)
	if err != nil {
		return nil, err
	}
	return &textureFile{width: width, height: height, fileBytes: cap(file), file: file}, nil
}

// decodedTextureFile returns a texture that is decoded.
func decodedTextureFile(sheet skin.Sheet) *textureFile {
	return &textureFile{width: sheet.Width, height: sheet.Height, sheet: sheet}
}

// size returns how many bytes the texture takes, before it is decoded and after.
func (t *textureFile) size() int { return max(t.fileBytes, 4*t.width*t.height) }

// decodeCost returns about how long it takes to decode the texture, 0 if that has been done.
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

// decode returns the sheet. The time it takes to decode it counts for a view.
func (t *textureFile) decode(ctx context.Context, view View) (sheet skin.Sheet, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return t.sheet, t.err
	}
	began := time.Now()
	_, span := tracing.Start(ctx, stageNames[decoding])
	defer tracing.End(span, &err)
	if t.sheet, err = skin.Decode(t.file); err != nil {
		// Its hash is right, so it was stored like that: that is ours to mend.
		t.err = fmt.Errorf("texture %s: %w", view.Texture, err)
	} else {
		view.observeStage(decoding, time.Since(began))
	}
	t.file = nil
	return t.sheet, t.err
}
