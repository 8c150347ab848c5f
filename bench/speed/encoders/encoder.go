package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/veneer-skins/veneer/edge/render"
)

// encoder is a program that encodes a picture as small as it can.
type encoder struct {
	name, source string   // the program, and its Debian package
	args         []string // IN and OUT stand for the files
}

var (
	optipng   = encoder{name: "optipng", source: "optipng", args: []string{"-quiet", "-o5", "IN", "-out", "OUT"}}
	zopflipng = encoder{name: "zopflipng", source: "zopfli", args: []string{"IN", "OUT"}}
)

// cwebp is lossless cwebp at one of its levels.
func cwebp(level string) encoder {
	return encoder{name: "cwebp", source: "webp", args: []string{"-quiet", "-lossless", "-z", level, "IN", "-o", "OUT"}}
}

// resultCache runs encoders and caches the sizes, as they take minutes for the same result.
type resultCache struct {
	cache, scratch string
	programs       sync.Map // the digest of each program, by name
}

// newResultCache returns a cache in the directory cache.
func newResultCache(cache string) (*resultCache, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "veneer-sizes-")
	if err != nil {
		return nil, err
	}
	return &resultCache{cache: cache, scratch: scratch}, nil
}

func (c *resultCache) close() { os.RemoveAll(c.scratch) }

// size returns the size of an encoder's file of a picture.
func (c *resultCache) size(ctx context.Context, t encoder, picture render.Picture) (int, error) {
	program, err := c.program(t)
	if err != nil {
		return 0, err
	}
	key := sha256.New()
	fmt.Fprintf(key, "%x %q %d %d %s", program, t.args, picture.Width, picture.Height, picture.Pix)
	file := filepath.Join(c.cache, fmt.Sprintf("%s-%x", t.name, key.Sum(nil)[:16]))
	if text, err := os.ReadFile(file); err == nil {
		return strconv.Atoi(string(text))
	}
	size, err := c.run(ctx, t, picture)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.name, err)
	}
	return size, c.writeAtomic(file, strconv.Itoa(size))
}

// program returns the digest of an encoder's program: another version may write another file.
func (c *resultCache) program(t encoder) ([sha256.Size]byte, error) {
	if cached, ok := c.programs.Load(t.name); ok {
		return cached.([sha256.Size]byte), nil //nolint:errcheck // nothing else is stored
	}
	path, err := exec.LookPath(t.name)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%s is missing: install Debian's package %s", t.name, t.source)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	digest := sha256.Sum256(program)
	c.programs.Store(t.name, digest)
	return digest, nil
}

// run runs an encoder on a picture and returns the size of the file.
func (c *resultCache) run(ctx context.Context, t encoder, picture render.Picture) (int, error) {
	folder, err := os.MkdirTemp(c.scratch, "")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	in, out := filepath.Join(folder, "in.png"), filepath.Join(folder, "out")
	var file bytes.Buffer
	if err := png.Encode(&file, imageOf(picture)); err != nil {
		return 0, err
	}
	if err := os.WriteFile(in, file.Bytes(), 0o600); err != nil {
		return 0, err
	}
	args := make([]string, len(t.args))
	for i, arg := range t.args {
		switch arg {
		case "IN":
			arg = in
		case "OUT":
			arg = out
		}
		args[i] = arg
	}
	if output, err := exec.CommandContext(ctx, t.name, args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}

// writeAtomic writes a file by way of a rename, so that it is never incomplete.
func (c *resultCache) writeAtomic(path, text string) error {
	file, err := os.CreateTemp(c.cache, "new-")
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// imageOf converts a picture for the standard library.
func imageOf(picture render.Picture) *image.NRGBA {
	return &image.NRGBA{
		Pix: picture.Pix, Stride: 4 * picture.Width, Rect: image.Rect(0, 0, picture.Width, picture.Height),
	}
}
