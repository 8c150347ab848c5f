package console

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// watchViewers keeps the viewers that pages make in globalThis.viewers.
func (tab *tab) watchViewers(t *testing.T) {
	t.Helper()
	eval[bool](t, tab, `(async () => {
		await import(document.querySelector("script[src$=\"app/main.js\"]").src.replace("app/main.js", "vendor/skinview3d.js"));
		globalThis.viewers = [];
		skinview3d.SkinViewer = class extends skinview3d.SkinViewer {
			constructor(options) {
				super(options);
				viewers.push(this);
			}
		};
		return true;
	})()`)
}

// reduceMotion has the browser say whether its user wants less motion.
func (tab *tab) reduceMotion(t *testing.T, value string) {
	t.Helper()
	send(t, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}},
	})
}

// withElytra returns a cape that also has an elytra, painted with the cape's colours.
func withElytra(cape skin.Sheet) skin.Sheet {
	painted := variant(cape, 0)
	wing := skin.ElytraFaces()
	for _, face := range []skin.Rect{wing.Top, wing.Bottom, wing.Right, wing.Front, wing.Left, wing.Back} {
		for i := range face.W * face.H {
			x, y := face.X+i%face.W, face.Y+i/face.W
			copy(painted.Pix[painted.At(x, y):][:4], cape.Pix[cape.At(1+x%10, 1+y%16):])
		}
	}
	return painted
}

// chooseAndAwait chooses how the figure moves, and waits until an expression is true.
func (tab *tab) chooseAndAwait(t *testing.T, animation, expression string) {
	t.Helper()
	tab.choose(t, "Animation", animation)
	tab.await(t, expression)
}

// A player is shown in 3D as it is dressed, and as it would be with what it tries on.
func TestDressedViewer(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	w := withWebGL.open(t, s.EdgeURL, "en")
	w.signInAsDemo(t, "/players", "Players")
	w.watchViewers(t)
	const isDressed = `Boolean(viewers.at(-1)?.skinTexture) && viewers.at(-1).playerObject.backEquipment === "cape" && viewers.at(-1).playerObject.cape.visible`
	w.pressAndAwait(t, "Show in 3D: Demo", `viewers.length === 1 && `+isDressed)
	w.inspect(t, "players-3d")
	worn := eval[string](t, w, `viewers[0].skinCanvas.toDataURL()`)
	w.follow(t, "Library", "/library", "Library")
	w.await(t, `document.querySelectorAll(".item").length > 0`)
	w.press(t, "Wear Frog Hoodie")
	w.await(t, `viewers.length === 2 && viewers[0].disposed && `+isDressed)
	if eval[string](t, w, `viewers[1].skinCanvas.toDataURL()`) == worn {
		t.Error("the player tries on what it wears")
	}
	w.inspect(t, "library-fitting")
}

// The viewer is loaded when it is asked for. It draws only while something moves that can be seen, and
// its context is given back with its page.
func TestViewer(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	zoe := register(t, s, "zoe@example.com", "Zoë")
	explorer := zoe.Upload(t, "Explorer", skin.Classic, artwork.Explorer())
	cape := zoe.Upload(t, "Sunrise", skin.Cape, withElytra(artwork.Sunrise()))
	path := fmt.Sprintf("/texture?tid=%d", explorer.TID)

	w := withWebGL.open(t, s.EdgeURL, "en")
	w.do(t, chromedp.EmulateViewport(800, 600))
	w.signIn(t, zoe, path, "Explorer")
	w.await(t, `Boolean(document.querySelector(".stage img")?.complete)`)
	if eval[bool](t, w, `performance.getEntriesByType("resource").some(({ name }) => name.includes("skinview3d"))`) {
		t.Error("the library is loaded before it is asked for")
	}
	w.watchViewers(t)
	w.press(t, "Show in 3D")
	w.await(t, `viewers[0]?.renderPaused === false && viewers[0].animation instanceof skinview3d.IdleAnimation`)
	w.pressAndAwait(t, "Pause", `viewers[0].renderPaused && viewers[0].animationID === null`)
	w.chooseAndAwait(t, "Walk", `!viewers[0].renderPaused && viewers[0].animation instanceof skinview3d.WalkingAnimation`)
	w.chooseAndAwait(t, "Run", `!viewers[0].renderPaused && viewers[0].animation instanceof skinview3d.RunningAnimation`)

	// Hidden, and off-screen.
	hide := func(state string) {
		eval[bool](t, w, `(Object.defineProperty(document, "visibilityState", { value: "`+state+`", configurable: true }), document.dispatchEvent(new Event("visibilitychange")), true)`)
	}
	hide("hidden")
	w.await(t, `viewers[0].renderPaused`)
	hide("visible")
	w.await(t, `!viewers[0].renderPaused`)
	eval[bool](t, w, `(document.body.append(Object.assign(document.createElement("div"), { id: "tall" })), document.getElementById("tall").style.height = "5000px", scrollTo(0, 5000), true)`)
	w.await(t, `viewers[0].renderPaused`)
	eval[bool](t, w, `(document.getElementById("tall").remove(), scrollTo(0, 0), true)`)
	w.await(t, `!viewers[0].renderPaused`)

	// A still figure is drawn when it is turned.
	w.chooseAndAwait(t, "None", `viewers[0].renderPaused && viewers[0].animation === null`)
	eval[bool](t, w, `(globalThis.drawn = 0, ((render) => { viewers[0].render = () => { drawn++; render.call(viewers[0]); }; })(viewers[0].render), true)`)
	w.pressAndAwait(t, "Turn the figure to the right", `drawn === 1`)
	box := eval[[]float64](t, w, `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.querySelector("canvas").getBoundingClientRect())`)
	for _, step := range []struct {
		kind input.DispatchMouseEventType
		dx   float64
	}{{chromedp.MousePressed, 0}, {chromedp.MouseMoved, 20}, {chromedp.MouseMoved, 60}, {chromedp.MouseReleased, 60}} {
		w.do(t, chromedp.MouseEvent(step.kind, box[0]+step.dx, box[1], chromedp.ButtonLeft))
	}
	w.await(t, `drawn > 1 && viewers[0].camera.position.x !== 0`)
	w.inspect(t, "texture-3d")
	w.do(t, chromedp.EmulateViewport(800, 600))

	// On leaving, the viewer ends, and gives its context back: browsers have some 16 of them.
	w.follow(t, "Library", "/library", "Library")
	w.await(t, `viewers[0].disposed && viewers[0].renderer.getContext().isContextLost() && viewers[0].animationID === null`)
	w.back(t)
	w.isAt(t, path, "Explorer")
	w.pressAndAwait(t, "Show in 3D", `viewers.length === 2 && Boolean(viewers[1].skinTexture) && !viewers[1].disposed`)

	// With the preference for less motion the figure stands still.
	w.reduceMotion(t, "reduce")
	w.visit(t, path)
	w.watchViewers(t)
	w.pressAndAwait(t, "Show in 3D", `Boolean(viewers[0]?.skinTexture) && !document.querySelector(".stage[aria-busy]")`)
	w.press(t, "Play") // that is what the button offers
	w.await(t, `!viewers[0].renderPaused`)
	w.reduceMotion(t, "no-preference")

	w.arrive(t, fmt.Sprintf("/texture?tid=%d", cape.TID), "Sunrise")
	w.watchViewers(t)
	w.pressAndAwait(t, "Show in 3D", `viewers[0]?.playerObject.backEquipment === "cape"`)
	w.inspect(t, "texture-3d-cape")
	w.pressAndAwait(t, "Elytra", `viewers[0].playerObject.backEquipment === "elytra"`)
	w.inspect(t, "texture-3d-elytra")

	// Without WebGL there are a sentence and a picture.
	w.arrive(t, path, "Explorer")
	eval[bool](t, w, `((get) => { HTMLCanvasElement.prototype.getContext = function (kind, ...rest) { return kind.includes("webgl") ? null : get.call(this, kind, ...rest); }; return true; })(HTMLCanvasElement.prototype.getContext)`)
	w.pressAndSee(t, "Show in 3D", "This browser cannot draw in 3D here, so a picture is shown.")
	w.await(t, `document.querySelector(".stage img")?.naturalWidth > 0`)
	w.inspect(t, "texture-no-webgl")
}

// point is a point of a figure, as edge/render has it: in units of classic texels, x to the player's
// left, y upwards from the ground, z to the front.
type point struct{ x, y, z float64 }

// box is a part of the figure.
type box struct {
	part     skin.Part
	from, to point
}

// boxesOf returns the parts of a standing figure, those of the layer over it apart.
func boxesOf(model skin.Type) (base, layers []box) {
	shoulder := 8.0
	if model == skin.Slim {
		shoulder = 7
	}
	base = []box{
		{skin.Head, point{-4, 24, -4}, point{4, 32, 4}},
		{skin.Body, point{-4, 12, -2}, point{4, 24, 2}},
		{skin.RightArm, point{-shoulder, 12, -2}, point{-4, 24, 2}},
		{skin.LeftArm, point{4, 12, -2}, point{shoulder, 24, 2}},
		{skin.RightLeg, point{-4, 0, -2}, point{0, 12, 2}},
		{skin.LeftLeg, point{0, 0, -2}, point{4, 12, 2}},
	}
	for _, b := range base {
		by := 0.25
		if b.part == skin.Head {
			by = 0.5
		}
		layers = append(layers, box{b.part + 1, point{b.from.x - by, b.from.y - by, b.from.z - by}, point{b.to.x + by, b.to.y + by, b.to.z + by}})
	}
	return base, layers
}

// place is a texel on the figure: where its middle is.
type place struct {
	at         point
	x, y       int     // on the sheet
	brightness float64 // of its face in our pictures
}

// places returns the texels of the faces of a box that the camera of previews sees: top, front, left.
func (b box) places(model skin.Type) map[string][]place {
	faces := skin.Faces(b.part, model)
	all := map[string][]place{}
	add := func(name string, face skin.Rect, brightness float64, at func(u, v float64) point) {
		for j := range face.H {
			for i := range face.W {
				u, v := (float64(i)+0.5)/float64(face.W), (float64(j)+0.5)/float64(face.H)
				all[name] = append(all[name], place{at(u, v), face.X + i, face.Y + j, brightness})
			}
		}
	}
	size := point{b.to.x - b.from.x, b.to.y - b.from.y, b.to.z - b.from.z}
	add("top", faces.Top, 1, func(u, v float64) point { return point{b.from.x + u*size.x, b.to.y, b.from.z + v*size.z} })
	add("front", faces.Front, 0.9, func(u, v float64) point { return point{b.from.x + u*size.x, b.to.y - v*size.y, b.to.z} })
	add("left", faces.Left, 0.7, func(u, v float64) point { return point{b.to.x, b.to.y - v*size.y, b.to.z - u*size.z} })
	return all
}

// view is the camera of the left half of previews: without perspective, turned by 45° and 25° above
// the horizon.
type view struct {
	width, height    int
	scale            float64 // pixels to a unit
	middleX, middleY float64 // in units
}

var (
	viewSin, viewCos = math.Sincos(-math.Pi / 4)
	viewUp, viewFlat = math.Sincos(25 * math.Pi / 180)
)

// across and down return where a point is in the camera's image, in units.
func (p point) across() float64 { return p.x*viewCos + p.z*viewSin }
func (p point) down() float64   { return -p.x*viewSin*viewUp - p.y*viewFlat + p.z*viewCos*viewUp }

func newView(height int) view {
	_, layers := boxesOf(skin.Classic) // which set the frame of both models
	left, right, top, bottom := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, b := range layers {
		for corner := range 8 {
			p := b.from
			if corner&1 > 0 {
				p.x = b.to.x
			}
			if corner&2 > 0 {
				p.y = b.to.y
			}
			if corner&4 > 0 {
				p.z = b.to.z
			}
			left, right = min(left, p.across()), max(right, p.across())
			top, bottom = min(top, p.down()), max(bottom, p.down())
		}
	}
	scale := float64(height) / (bottom - top)
	return view{int(math.Ceil(scale * (right - left + 1))), height, scale, (left + right) / 2, (top + bottom) / 2}
}

// sample returns the colour of a picture around a point of the figure, and whether it is the same
// a little aside.
func (v view) sample(picture image.Image, p point) (found color.NRGBA, uniform bool) {
	at := func(dx, dy float64) color.NRGBA {
		x := float64(v.width)/2 + v.scale*(p.across()-v.middleX+dx)
		y := float64(v.height)/2 + v.scale*(p.down()-v.middleY+dy)
		colour, _ := color.NRGBAModel.Convert(picture.At(int(x), int(y))).(color.NRGBA)
		return colour
	}
	found = at(0, 0)
	const aside = 0.15 // of at least 0.35, less the 0.14 by which skinview3d has the legs inwards and back
	for _, d := range [][2]float64{{-aside, 0}, {aside, 0}, {0, -aside}, {0, aside}} {
		if !near(found, at(d[0], d[1]), 1) {
			return found, false
		}
	}
	return found, true
}

// near reports whether two colours are the same when one of them has that much of the light.
func near(bright, other color.NRGBA, light float64) bool {
	same := func(a, b uint8) bool { return math.Abs(float64(a)*light-float64(b)) <= 3 }
	return same(bright.R, other.R) && same(bright.G, other.G) && same(bright.B, other.B) && bright.A == other.A
}

// drawLikePreview has the viewer draw what our preview shows: from the same side, without perspective and
// shadows. Its figure stands 16 units lower.
const drawLikePreview = `(([width, height, scale, middleX, middleY, downwards]) => {
	const viewer = viewers.at(-1);
	viewer.renderPaused = true;
	viewer.animation = null;
	viewer.pixelRatio = 1;
	viewer.setSize(width, height);
	viewer.globalLight.intensity = Math.PI; // of which a surface reflects 1/π
	viewer.cameraLight.intensity = 0;
	viewer.playerWrapper.rotation.set(0, 0, 0);
	const { camera } = viewer;
	const pitch = 25 * Math.PI / 180;
	camera.position.set(Math.SQRT1_2 * Math.cos(pitch), Math.sin(pitch), Math.SQRT1_2 * Math.cos(pitch)).multiplyScalar(100);
	camera.lookAt(0, 0, 0);
	const [x, y] = [2 * scale / width, 2 * scale / height];
	camera.projectionMatrix.set(x, 0, 0, -x * middleX, 0, y, 0, y * (middleY - 16 * downwards), 0, 0, -1 / 50, -2, 0, 0, 0, 1);
	viewer.render();
	return viewer.canvas.toDataURL();
})(%s)`

// The viewer shows the same texels in the same places as our previews: of the base and of the layers, with
// wide and slim arms, and of old sheets.
func TestViewerComparedWithPreview(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	zoe := register(t, s, "zoe@example.com", "Zoë")
	layered, old := skintest.Marker(64, 64), skintest.Marker(64, 32)
	bare, hatless := skintest.Marker(64, 64), skintest.Marker(64, 32)
	for part := skin.Hat; part <= skin.LeftPants; part += 2 {
		for _, sheet := range []skin.Sheet{bare, hatless} {
			faces := skin.Faces(part, skin.Classic)
			for _, face := range []skin.Rect{faces.Top, faces.Bottom, faces.Right, faces.Front, faces.Left, faces.Back} {
				for i := range face.W * face.H {
					if y := face.Y + i/face.W; y < sheet.Height {
						sheet.Pix[sheet.At(face.X+i%face.W, y)+3] = 0
					}
				}
			}
		}
	}
	w := withWebGL.open(t, s.EdgeURL, "en")
	w.reduceMotion(t, "reduce") // SwiftShader takes most of a processor for an animation
	w.signIn(t, zoe, "/library", "Library")
	camera := newView(512)
	for _, c := range []struct {
		name   string
		model  skin.Type
		sheet  skin.Sheet
		layers bool
	}{
		{"wide base", skin.Classic, bare, false},
		{"wide layers", skin.Classic, layered, true},
		{"slim base", skin.Slim, bare, false},
		{"slim layers", skin.Slim, layered, true},
		{"old", skin.Classic, old, false},
		{"old without a hat", skin.Classic, hatless, false},
	} {
		texture := zoe.Upload(t, c.name, c.model, c.sheet)
		path := fmt.Sprintf("/texture?tid=%d", texture.TID)
		w.arrive(t, path, c.name)
		w.watchViewers(t)
		w.pressAndAwait(t, "Show in 3D", `Boolean(viewers[0]?.skinTexture) && !document.querySelector(".stage[aria-busy]")`)
		values := fmt.Sprintf("[%d, %d, %v, %v, %v, %v]", camera.width, camera.height, camera.scale, camera.middleX, camera.middleY, -viewFlat)
		encoded, ok := strings.CutPrefix(eval[string](t, w, fmt.Sprintf(drawLikePreview, values)), "data:image/png;base64,")
		drawn, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			t.Fatal("the viewer gives no picture", err)
		}
		preview := decodePNG(t, []byte(httpservertest.Get(t, fmt.Sprintf("%s/preview/%d?height=512&png", s.EdgeURL, texture.TID)).Body))
		if size := preview.Bounds().Size(); size != image.Pt(2*camera.width, camera.height) {
			t.Fatalf("the preview has %v pixels", size)
		}
		compare(t, c.name, camera, c.model, c.sheet.Normalised(c.model), c.layers, decodePNG(t, drawn), preview)
	}
}

// compare compares two pictures at the middle of all texels of the figure.
func compare(t *testing.T, name string, camera view, model skin.Type, sheet skin.Sheet, withLayers bool, drawn, preview image.Image) {
	t.Helper()
	boxes, layers := boxesOf(model)
	if withLayers {
		boxes = layers
	}
	for _, b := range boxes {
		for face, places := range b.places(model) {
			seen := 0
			for _, p := range places {
				got, isUniform := camera.sample(drawn, p.at)
				want, isUniformToo := camera.sample(preview, p.at)
				if !isUniform || !isUniformToo {
					continue // at an edge
				}
				pixel := sheet.Pix[sheet.At(p.x, p.y):]
				texel := color.NRGBA{R: pixel[0], G: pixel[1], B: pixel[2], A: pixel[3]}
				switch {
				case near(texel, got, 1) && near(texel, want, p.brightness):
					seen++
				case !near(got, want, 1) && !near(got, want, 0.9) && !near(got, want, 0.7):
					t.Errorf("%s: at the texel %d, %d of part %d, %s, the viewer has %v, the preview %v, the sheet %v", name, p.x, p.y, b.part, face, got, want, texel)
				}
			}
			isVisible := face == "front" || face == "top" && b.part <= skin.Hat || face == "left" && (b.part <= skin.Hat || b.part == skin.LeftArm || b.part == skin.LeftSleeve)
			if isVisible && seen < len(places)/2 {
				t.Errorf("%s: of part %d, %s, only %d of %d texels are seen in both", name, b.part, face, seen, len(places))
			}
		}
	}
}

func decodePNG(t *testing.T, file []byte) image.Image {
	t.Helper()
	return testenv.Must(png.Decode(bytes.NewReader(file)))(t)
}
