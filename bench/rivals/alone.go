package rivals

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/png"
	"os"
	"path/filepath"

	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/argon2"
)

// StartHash starts this program again, as a fasthttp server that answers with the argon2id
// hash of each request's body, as core has passwords hashed, and does nothing else.
func StartHash(ctx context.Context, place Place) (*Server, error) {
	return startSelf(ctx, place, "hash", hashProgram, func(address string) ([]string, error) { return []string{hashRole, address}, nil })
}

// StartKeep starts this program again, as a fasthttp server that decodes the PNG file that
// is each request's body, encodes it anew, and writes that to a file that is named by its
// hash, and does nothing else.
func StartKeep(ctx context.Context, place Place) (*Server, error) {
	return startSelf(ctx, place, "keep", keepProgram, func(address string) ([]string, error) {
		files, err := place.directory("kept")
		return []string{keepRole, address, files}, err
	})
}

// startSelf starts this program again with arguments, of which the last are told where to
// listen.
func startSelf(ctx context.Context, place Place, name string, program Program, arguments func(address string) ([]string, error)) (*Server, error) {
	version, err := program.Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	args, err := arguments(address)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := Run(place, name, nil, nil, append([]string{self}, args...)...)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: program.Name, Version: version, Process: p, Address: address}).listening(ctx)
}

func serveHash(address string) error {
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		var salt [16]byte
		_, _ = rand.Read(salt[:]) // it never fails
		const passes, memory, lanes, length = 2, 19 * 1024, 1, 32
		rc.SetBodyString(hex.EncodeToString(argon2.IDKey(rc.PostBody(), salt[:], passes, memory, lanes, length)))
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
