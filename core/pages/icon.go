package pages

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

// iconCache is the Cache-Control of the icons and the manifest, whose paths are the same in the next release.
const iconCache = "public, max-age=86400"

// face is the icon, as app/icon.svg of the console has it: a letter is a colour.
var face = [8]string{"dddddddd", "dddddddd", "gggggggg", "gggggggg", "gwkggkwg", "gggggggg", "gggkkggg", "gggggggg"}

var faceColours = map[byte]color.NRGBA{
	'd': {0x1f, 0x6b, 0x3a, 0xff}, 'g': {0x2f, 0x8f, 0x50, 0xff}, 'w': {0xff, 0xff, 0xff, 0xff}, 'k': {0x14, 0x35, 0x1f, 0xff},
}

// drawIcon returns a PNG of the icon, whose side is a multiple of 8 pixels.
func drawIcon(side int) []byte {
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			picture.SetNRGBA(x, y, faceColours[face[y*len(face)/side][x*len(face)/side]])
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // into memory it never fails
	}
	return file.Bytes()
}

const (
	faviconSide = 32
	touchSide   = 192 // iOS shows 180
)

// newFiles returns the icons, which are the site's logo if it has one, and the manifest by their paths.
func (s *Server) newFiles() map[string]*httpserver.Asset {
	favicon, touch := httpserver.NewAsset(toICO(drawIcon(faviconSide)), "image/x-icon", iconCache), drawIcon(touchSide)
	size := image.Point{touchSide, touchSide}
	if s.Logo != nil {
		touch = s.Logo
		favicon = httpserver.NewAsset(touch, "image/png", iconCache) // which all browsers take there, too
		if logo, err := png.DecodeConfig(bytes.NewReader(touch)); err == nil {
			size = image.Point{logo.Width, logo.Height}
		}
	}
	return map[string]*httpserver.Asset{
		faviconPath: favicon, touchPath: httpserver.NewAsset(touch, "image/png", iconCache), manifestPath: s.newManifest(size),
	}
}

// toICO returns an icon file with one picture, a PNG of faviconSide.
func toICO(picture []byte) []byte {
	const headerBytes = 22
	file := []byte{0, 0, 1, 0, 1, 0, faviconSide, faviconSide, 0, 0, 1, 0, 32, 0}
	file = binary.LittleEndian.AppendUint32(file, uint32(len(picture)))
	file = binary.LittleEndian.AppendUint32(file, headerBytes)
	return append(file, picture...)
}

// newManifest returns the web app manifest, with an icon of a size.
func (s *Server) newManifest(size image.Point) *httpserver.Asset {
	type icon struct {
		Src   string `json:"src"`
		Sizes string `json:"sizes"`
		Type  string `json:"type"`
	}
	body, err := json.Marshal(struct {
		Name       string `json:"name"`
		ShortName  string `json:"short_name"`
		Start      string `json:"start_url"`
		Display    string `json:"display"`
		Theme      string `json:"theme_color"`
		Background string `json:"background_color"`
		Icons      []icon `json:"icons"`
	}{s.Name, s.Name, s.Console() + "/", "standalone", s.LightAccent, "#fafaf7", []icon{{touchPath, fmt.Sprintf("%dx%d", size.X, size.Y), "image/png"}}})
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // of strings it never fails
	}
	return httpserver.NewAsset(body, "application/manifest+json", iconCache)
}
