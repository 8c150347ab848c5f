package baseline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/draw"
	"image/png"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	scaled "golang.org/x/image/draw"

	"github.com/veneer-skins/veneer/shared/skin"
)

// StartImagePNG starts this program again as a typical Go server: net/http with image/png and
// image/draw, which renders the faces of the skins in a directory, stored as by shared/blobstore.
// It caches nothing. View.Target is the request target; it answers 404 for another mode, and for
// WebP, which Go does not encode.
func StartImagePNG(ctx context.Context, env Env, textures string) (*Server, error) {
	s, err := startSelf(ctx, env, "image-png", imagePNGProgram, func(address string) ([]string, error) { return []string{imagePNGRole, address, textures}, nil })
	if err != nil {
		return nil, err
	}
	s.unsupported = func(v View) string {
		if v.Format != "png" {
			return "Go's packages write no " + v.Format
		}
		return flatOnly(v)
	}
	return s, nil
}

// serveImagePNG serves faces at an address.
func serveImagePNG(address, textures string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /flat/{hash}", func(w http.ResponseWriter, r *http.Request) {
		hash, err := skin.ParseHash(r.PathValue("hash"))
		query := r.URL.Query()
		side, sizeErr := strconv.Atoi(query.Get("size"))
		if errors.Join(err, sizeErr) != nil || side < minFlatSize || side > maxFlatSize || query.Has("webp") {
			http.NotFound(w, r)
			return
		}
		face, err := drawFace(filepath.Join(textures, hash.String()[:2], hash.String()+".png"), side)
		if errors.Is(err, fs.ErrNotExist) {
			http.NotFound(w, r)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var picture bytes.Buffer
		if err := png.Encode(&picture, face); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Length", strconv.Itoa(picture.Len())) // required by package load
		_, _ = w.Write(picture.Bytes())                               // the client may be gone
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
