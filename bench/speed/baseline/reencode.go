package baseline

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

// StartReencode starts this program again as a fasthttp server that decodes the PNG file in each
// request's body, encodes it again, writes that to a file named by its hash, and does nothing else.
func StartReencode(ctx context.Context, env Env) (*Server, error) {
	return startSelf(ctx, env, "reencode", reencodeProgram, func(address string) ([]string, error) {
		files, err := env.mkdir("reencoded")
		return []string{reencodeRole, address, files}, err
	})
}

func serveReencode(address, files string) error {
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		name, err := reencode(rc.PostBody(), files)
		if err != nil {
			rc.Error(err.Error(), fasthttp.StatusBadRequest)
			return
		}
		rc.SetBodyString(name)
	})
}

func reencode(uploaded []byte, files string) (name string, err error) {
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
