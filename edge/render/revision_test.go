//go:build !race

package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// revisionFile has a revision and the digest of the files that belong to it.
const revisionFile = "testdata/revision.txt"

// The constant revision changes with the files. Otherwise clients and content delivery networks
// would take old pictures for new ones, as the ETags would be equal.
func TestRevisionGuard(t *testing.T) {
	t.Parallel()
	if !render.ExactPlatform {
		t.Skip("the compiler may fuse floating-point operations here, and its version is part of the revision")
	}
	digest := digestOfFiles(t)
	var recorded struct {
		revision int
		digest   string
	}
	file := testenv.Must(os.ReadFile(revisionFile))(t)
	if _, err := fmt.Fscanf(bytes.NewReader(file), "%d %s", &recorded.revision, &recorded.digest); err != nil {
		t.Fatalf("%s: %v", revisionFile, err)
	}

	switch changed := digest != recorded.digest; {
	case changed && render.CurrentRevision <= recorded.revision:
		t.Errorf("The files of some pictures have changed, but the revision is still %d. If the change is intended, set the constant revision "+
			"in edge/render/encode.go to %d, run \"go test ./edge/render -run 'TestGolden|TestRevisionGuard' -update\", and look at the changed pictures in testdata.",
			render.CurrentRevision, recorded.revision+1)
	case render.CurrentRevision == recorded.revision:
	case *update:
		testenv.Do(t, os.WriteFile(revisionFile, fmt.Appendf(nil, "%d %s\n", render.CurrentRevision, digest), 0o644))
	default:
		t.Errorf("The revision is %d, but %s is of revision %d. Run \"go test ./edge/render -run TestRevisionGuard -update\", if files have changed; else set the revision back.",
			render.CurrentRevision, revisionFile, recorded.revision)
	}
}

// digestOfFiles returns the digest of the golden pictures and of samples that reach every branch of
// the drawing and of the native encoders, in both formats.
func digestOfFiles(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	addWorn := func(sheet, worn skin.Sheet, view render.View) {
		for _, view.Format = range []render.Format{render.PNG, render.WebP} {
			sum.Write(mustRenderWorn(t, sheet, worn, view))
		}
	}
	add := func(sheet skin.Sheet, view render.View) { addWorn(sheet, skin.Sheet{}, view) }
	for _, g := range goldens {
		addWorn(readSheet(t, g.sheet), wornSheet(t, g.view), g.view)
	}

	// Noise has all kinds of texels in as many places as there are. The classic skin has few
	// colours, for which encoders choose other ways. All input is in this package, so that only
	// changes of the renderer change the digest.
	modern, legacy, fine, finest := noise(1, 64, 64), noise(2, 64, 32), noise(3, 256, 256), noise(4, 512, 512)
	few, hatless := readSheet(t, "classic"), noise(5, 64, 32)
	for i := 3; i < len(hatless.Pix); i += 4 {
		hatless.Pix[i] = 255
	}
	for attitude := range render.Attitude(render.AttitudeCount) {
		add(modern, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 48, Attitude: attitude})
		add(modern, render.View{Mode: render.Bust, Type: skin.Slim, Size: 104, Attitude: attitude})
		add(fine, render.View{Mode: render.Body, Type: skin.Classic, Size: 112, Attitude: attitude})
	}
	for pose := range render.Pose(render.PoseCount) {
		for wear := render.WearNothing; wear <= render.WearElytra; wear++ {
			for turn := range render.TurnCount {
				tilt := render.Tilt((turn + int(pose) + int(wear)) % 3)
				addWorn(modern, legacy, render.View{Mode: render.Bust, Type: skin.Classic, Size: 48, Pose: pose, Wear: wear, Attitude: render.Bust.Attitude(turn, tilt)})
				addWorn(modern, noise(6, 512, 256), render.View{Mode: render.Body, Type: skin.Slim, Size: 96, Pose: pose, Wear: wear, Attitude: render.Body.Attitude(turn, tilt)})
			}
		}
	}
	for wear := render.WearCape; wear <= render.WearElytra; wear++ {
		for mode := render.Back; mode <= render.Right; mode++ {
			addWorn(fine, legacy, render.View{Mode: mode, Type: skin.Slim, Size: 112, Wear: wear})
		}
		addWorn(modern, legacy, render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Wear: wear})
	}
	for mode := range render.Mode(render.ModeCount) {
		if omissible := mode.Omissible(); omissible != 0 {
			add(modern, render.View{Mode: mode, Type: skin.Classic, Size: mode.SizeOf(96), Omit: omissible})
		}
	}
	for _, sample := range []struct {
		sheet skin.Sheet
		kind  skin.Type
		mode  render.Mode
		sizes []int
	}{
		{modern, skin.Classic, render.Bust, []int{64, 256}},
		{modern, skin.Slim, render.Body, []int{96, 400}},
		{finest, skin.Classic, render.Body, []int{1024}},
		{modern, skin.Slim, render.Front, []int{64, 80}},
		{fine, skin.Classic, render.Back, []int{128, 208}},
		{legacy, skin.Slim, render.Left, []int{96}},
		{finest, skin.Classic, render.Right, []int{1024}},
		{few, skin.Classic, render.Flat, []int{96, 512}},
		{few, skin.Classic, render.Isometric, []int{128, 512}},
		{few, skin.Classic, render.Preview, []int{400, 1024}},
		{modern, skin.Classic, render.Isometric, []int{512}},
		{modern, skin.Classic, render.Preview, []int{400}},
		{modern, skin.Classic, render.Flat, []int{24, 32}},      // whole pixels per texel
		{fine, skin.Classic, render.Flat, []int{24, 40}},        // several texels in a pixel, and parts of texels
		{modern, skin.Classic, render.Isometric, []int{48, 64}}, // smooth and crisp
		{fine, skin.Classic, render.Isometric, []int{64, 240}},
		{finest, skin.Classic, render.Isometric, []int{264}}, // without a sample map
		{finest, skin.Classic, render.Preview, []int{1024}},  // the most work for encoders
		{modern, skin.Classic, render.Preview, []int{96, 144}},
		{modern, skin.Slim, render.Preview, []int{96, 144}},
		{legacy, skin.Classic, render.Preview, []int{144}},
		{hatless, skin.Classic, render.Preview, []int{144}},
		{noise(7, 64*skin.MaxScale, 64*skin.MaxScale), skin.Classic, render.Preview, []int{1024}}, // capped in height
		{legacy, skin.Cape, render.Preview, []int{64}},
		{noise(6, 512, 256), skin.Cape, render.Preview, []int{64, 240}}, // shrunk and stretched
		{readSheet(t, "elytra"), skin.Cape, render.Preview, []int{64, 112}},
	} {
		for _, size := range sample.sizes {
			add(sample.sheet, render.View{Mode: sample.mode, Type: sample.kind, Size: size})
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// noise returns a sheet of random texels: a quarter of them transparent, a quarter translucent.
func noise(seed uint64, width, height int) skin.Sheet {
	random := rand.NewPCG(seed, 0)
	sheet := skin.NewSheet(width, height)
	for i := 0; i < len(sheet.Pix); i += 4 {
		v := random.Uint64()
		binary.LittleEndian.PutUint32(sheet.Pix[i:], uint32(v))
		switch v >> 62 {
		case 0:
			sheet.Pix[i+3] = 0
		case 1:
		default:
			sheet.Pix[i+3] = 255
		}
	}
	return sheet
}
