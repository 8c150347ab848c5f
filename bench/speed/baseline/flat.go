package baseline

import (
	"bufio"
	"bytes"
	_ "embed" // for the server
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	scaled "golang.org/x/image/draw"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
)

// FlatTarget returns the request target of a face, as PNG, for StartSharp and ImagePNG.
func FlatTarget(size int, hash skin.Hash) string { return fmt.Sprintf("/flat/%s?size=%d", hash, size) }

// serveImagePNG is a typical Go server: net/http with image/png and image/draw, which renders the faces of the skins
// in a directory, stored as by shared/blobstore. It caches nothing.
func serveImagePNG(address string, args []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /flat/{hash}", func(w http.ResponseWriter, r *http.Request) {
		hash, err := skin.ParseHash(r.PathValue("hash"))
		side, sizeErr := strconv.Atoi(r.URL.Query().Get("size"))
		if err := errors.Join(err, sizeErr); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		var picture bytes.Buffer
		face, err := drawFace(filepath.Join(args[0], hash.String()[:2], hash.String()+".png"), side)
		if err == nil {
			err = png.Encode(&picture, face)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			http.NotFound(w, r)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Content-Length", strconv.Itoa(picture.Len())) // required by package load
			_, _ = w.Write(picture.Bytes())                               // the client may be gone
		}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Hour}
	return server.ListenAndServe()
}

// drawFace draws the face of a skin with the hat over it.
func drawFace(path string, side int) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	sheet, err := png.Decode(bufio.NewReader(file))
	if err != nil {
		return nil, err
	}
	k := sheet.Bounds().Dx() / 64
	face := image.NewRGBA(image.Rect(0, 0, 8*k, 8*k))
	draw.Draw(face, face.Bounds(), sheet, image.Pt(8*k, 8*k), draw.Src)
	draw.Draw(face, face.Bounds(), sheet, image.Pt(40*k, 8*k), draw.Over)

	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	scaled.NearestNeighbor.Scale(picture, picture.Bounds(), face, face.Bounds(), draw.Src, nil)
	return picture, nil
}

// sharpServer is the server's source.
//
//go:embed sharp/server.js
var sharpServer string

const sharpVersion = `
let sharp;
try { sharp = require('sharp'); } catch (error) { console.log(error.code); process.exit(1); }
console.log(sharp.versions.sharp + ', libvips ' + sharp.versions.vips + ' of ' + sharp.concurrency() + ' thread, Node ' + process.versions.node);`

// Sharp returns the sharp in a directory of Node modules, which deploy/dev/node installs.
func Sharp(modules string) Program {
	return Program{
		"sharp", "Node 20.19 or later with npm, newer than Debian 12 has, from where Node is made; then deploy/dev/node",
		commandVersion(`(.*)`, "env", modulesIn(modules), "node", "-e", sharpVersion),
	}
}

// modulesIn is the setting by which Node finds the modules in a directory.
func modulesIn(directory string) string {
	absolute, _ := filepath.Abs(directory) // it fails only without a working directory
	return "NODE_PATH=" + filepath.Join(absolute, "node_modules")
}

// StartSharp starts a typical Node server: sharp behind Node's http server, in one process, which
// renders the faces of the skins in a directory, stored as by shared/blobstore. It caches nothing.
func StartSharp(tb testing.TB, textures, modules string) *Server {
	tb.Helper()
	s := newServer(tb, "sharp")
	host, port := stack.HostPort(s.Address)
	path := stack.WriteFile(tb, tb.TempDir(), "server.js", sharpServer)
	return s.start(tb, []string{modulesIn(modules)}, "node", path, host, port, textures)
}
