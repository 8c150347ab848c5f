package raster

import (
	"fmt"
	"math"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Elevations of the cameras of tests, in radians.
var (
	isoPitch  = math.Atan(1 / math.Sqrt2)
	nearPitch = 25 * math.Pi / 180
)

// sceneOf returns the scene of body parts that fill a height, beside each other as seen by cameras.
func sceneOf(of skin.Type, parts []model.BodyPart, width, height int, cameras ...Camera) Scene {
	s := Scene{Width: width * len(cameras), Height: height, Scale: math.Inf(1)}
	for _, c := range cameras {
		e := c.ExtentOf(model.LayerBoxes(parts)...)
		s.Scale = min(s.Scale, float64(width)/e.Width(), float64(height)/e.Height())
	}
	for i, c := range cameras {
		e := c.ExtentOf(model.LayerBoxes(parts)...)
		s.Figures = append(s.Figures, Figure{Camera: c, Parts: parts, Model: of, Viewport: Centred(e, s.Scale, i*width, width, height)})
	}
	return s
}

// headScene is a head in isometric projection.
func headScene(size int) Scene {
	return sceneOf(skin.Classic, []model.BodyPart{model.Head()}, size, size, NewCamera(45, isoPitch))
}

// previewScene is a whole figure from the front and from the back.
func previewScene(of skin.Type, height int) Scene {
	return sceneOf(of, model.Figure(of, model.Stand), height*46/100, height, NewCamera(-45, nearPitch), NewCamera(135, nearPitch))
}

// scenes are scenes in which everything happens: heads, previews, and a figure in all turns and tilts.
func scenes() []Scene {
	all := []Scene{headScene(96), previewScene(skin.Classic, 400), previewScene(skin.Slim, 1024)}
	for yaw := 0.0; yaw < 360; yaw += 45 {
		for _, pitch := range []float64{isoPitch, nearPitch, 0} {
			all = append(all, sceneOf(skin.Slim, model.Figure(skin.Slim, model.Stand), 200, 400, NewCamera(yaw, pitch)))
		}
	}
	return all
}

// testMap is the key of a sample map.
type testMap struct {
	isHead bool
	model  skin.Type
	size   int
	scale  int
}

func (m testMap) scene() Scene {
	if m.isHead {
		return headScene(m.size)
	}
	return previewScene(m.model, m.size)
}

// Build builds the sample map.
func (m testMap) Build() *SampleMap { return NewSampleMap(m.scene(), Scales{Skin: m.scale}) }

func (m testMap) String() string {
	return fmt.Sprintf("isHead=%t/model=%s/size=%d/scale=%d", m.isHead, m.model, m.size, m.scale)
}
