package e2e

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// Every address that docs/mods.md tells players to set has the player's skin, or its profile: as
// it is stored, or as a sheet of 64 × 32 pixels.
func TestModsPage(t *testing.T) {
	t.Parallel()
	s := stack.Start(t, blobstoretest.Directory(t).Config)
	ann := signUp(t, s.CoreURL)
	uploaded := ann.upload(t, "first", drawSheet(10)).Data
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	ann.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), map[string]any{"skin": uploaded.TID})

	get := func(path string) (status int, content []byte) {
		t.Helper()
		response, err := http.Get(s.EdgeURL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if content, err = io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, content
	}
	stored := "/textures/" + uploaded.Hash
	var file []byte
	eventually(t, "the skin can be fetched", func() string {
		status, content := get("/skin/Ann_1.png")
		file = content
		if status != http.StatusOK {
			return fmt.Sprint(status)
		}
		return ""
	})
	if _, content := get(stored); !bytes.Equal(content, file) {
		t.Fatal("the player's skin is not the uploaded one")
	}

	text := strings.ReplaceAll(read(t, "docs/mods.md"), "`…/", "`https://skins.example.org/")
	text = strings.ReplaceAll(text, "`/", "`https://skins.example.org/")
	var paths []string
	for _, match := range regexp.MustCompile("https://skins[.]example[.]org(/[^\"`\\s]*)").FindAllStringSubmatch(text, -1) {
		path := strings.NewReplacer("{name}", "Ann_1", "*", "Ann_1", "%s", "Ann_1", "%name%", "Ann_1").Replace(match[1])
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	profiles, files, sheets, capes := 0, 0, 0, 0
	for _, path := range paths {
		isRoot := path == "/" || path == "/usm" || path == "/csl/" || path == "/usm/"
		if isRoot {
			path = strings.TrimSuffix(path, "/") + "/Ann_1.json"
		}
		if path == "/api" || path == "/api/yggdrasil/skins/" {
			continue
		}
		status, content := get(path)
		config, err := png.DecodeConfig(bytes.NewReader(content))
		isCape := strings.Contains(path, "cape") || strings.Contains(strings.ToLower(path), "cloaks")
		switch {
		case isRoot && status == http.StatusOK && bytes.Contains(content, []byte(`"skins":{"default":"`+uploaded.Hash+`"}`)):
			profiles++
		case isCape && status == http.StatusNotFound: // the player wears none
			capes++
		case status == http.StatusOK && bytes.Equal(content, file):
			files++
		case status == http.StatusOK && err == nil && config.Width == 64 && config.Height == 32:
			sheets++
		default:
			t.Errorf("%s: %d, %d bytes", path, status, len(content))
		}
	}
	if profiles < 3 || files < 4 || sheets < 2 || capes < 3 {
		t.Errorf("the page has %d roots, %d addresses of the file, %d of the sheet and %d of capes: %q", profiles, files, sheets, capes, paths)
	}

	// The sheet has the head of the stored file.
	_, content := get("/legacy/Ann_1.png")
	sheet, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for y := 8; y < 16; y++ {
		for x := 8; x < 16; x++ {
			want, got := whole.At(x, y), sheet.At(x, y)
			wr, wg, wb, _ := want.RGBA()
			gr, gg, gb, _ := got.RGBA()
			if wr != gr || wg != gg || wb != gb {
				t.Fatalf("texel %d, %d is %v; want %v", x, y, got, want)
			}
		}
	}
}
