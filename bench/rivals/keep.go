package rivals

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image/png"
	"os"
	"path/filepath"

	"github.com/valyala/fasthttp"
)

// StartKeep starts this program again, as a fasthttp server that decodes the PNG file that
// is each request's body, encodes it anew, and writes that to a file that is named by its
// hash, and does nothing else.
func StartKeep(ctx context.Context, place Place) (*Server, error) {
	return startSelf(ctx, place, "keep", keepProgram, func(address string) ([]string, error) {
		files, err := place.directory("kept")
		return []string{keepRole, address, files}, err
	})
}

func serveKeep(address, files string) error {
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		name, err := keep(rc.PostBody(), files)
		if err != nil {
			rc.Error(err.Error(), fasthttp.StatusBadRequest)
			return
		}
		rc.SetBodyString(name)
	})
}

func keep(uploaded []byte, files string) (name string, err error) {
	picture, err := png.Decode(bytes.NewReader(uploaded))
	if err != nil {
		return "", err
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%x", sha256.Sum256(file.Bytes()))
	return name, os.WriteFile(filepath.Join(files, name), file.Bytes(), 0o600)
}
