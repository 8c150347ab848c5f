package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// paint writes a skin that differs from those of other shades.
func paint(t *testing.T, name string, shade byte) string {
	t.Helper()
	return file(t, name, variant(artwork.Robot(), int(shade)))
}

// dropped is a file that is dropped on a page.
type dropped struct{ name, path string }

// drag drags files over the element of a selector, and drops them there if isDropped.
func (tab *tab) drag(t *testing.T, selector string, isDropped bool, files ...dropped) {
	t.Helper()
	type content struct{ Name, Content string }
	var contents []content
	for _, f := range files {
		read := testenv.Must(os.ReadFile(f.path))(t)
		contents = append(contents, content{f.name, base64.StdEncoding.EncodeToString(read)})
	}
	encoded := testenv.Must(json.Marshal(contents))(t)
	tab.await(t, fmt.Sprintf("Boolean(document.querySelector(%s))", quote(selector)))
	eval[bool](t, tab, fmt.Sprintf(`(async () => {
		const data = new DataTransfer();
		for (const { Name, Content } of %s) data.items.add(new File([Uint8Array.from(atob(Content), (c) => c.charCodeAt(0))], Name, { type: "image/png" }));
		const fire = (type) => document.querySelector(%s).dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
		fire("dragenter");
		fire("dragover");
		if (%t) fire("drop");
		return true;
	})()`, encoded, quote(selector), isDropped))
}

// takesDrops waits until files can be dropped anywhere.
func (tab *tab) takesDrops(t *testing.T) {
	t.Helper()
	tab.await(t, `(() => {
		const data = new DataTransfer();
		data.items.add(new File([], "a.png"));
		const event = new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer: data });
		document.body.dispatchEvent(event);
		dispatchEvent(new DragEvent("dragleave"));
		return event.defaultPrevented;
	})()`)
}

// ready is whether a file of a name can be uploaded.
func ready(name string) string {
	return fmt.Sprintf(`(() => { const b = document.querySelector(%s); return Boolean(b) && !b.hasAttribute("aria-disabled"); })()`, quote(`button[aria-label="Upload `+name+`"]`))
}

// set chooses a value of the select of a file, or its type.
func (tab *tab) set(t *testing.T, name, kind, value string) {
	t.Helper()
	if kind == "type" {
		eval[bool](t, tab, "("+typeOf(name)+`.find((e) => e.value === "`+value+`").click(), true)`)
		return
	}
	eval[bool](t, tab, fmt.Sprintf(`((s) => { s.value = %s; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelector(%s))`,
		quote(value), quote(`article[aria-label="`+name+`"] select[id^="`+kind+`-"]`)))
}

// typeOf returns the buttons for the type of a file.
func typeOf(name string) string {
	return "[...document.querySelectorAll(" + quote(`article[aria-label="`+name+`"] [name^="type-"]`) + ")]"
}

// chosen returns the type of a file.
func (tab *tab) chosen(t *testing.T, name string) string {
	t.Helper()
	return eval[string](t, tab, typeOf(name)+".find((e) => e.checked).value")
}

// A user drops several files on a page, sees each of them, changes what was guessed, and uploads them;
// a player wears one.
func TestUpload(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_SCORE_REGISTRATION=1000", "CORE_SCORE_TEXTURE_KIB=2", "CORE_SCORE_PRIVATE_TEXTURE_KIB=5")
	ann := register(t, s, "ann@example.com", "Ann")
	w.reduceMotion(t, "reduce") // a figure that turns takes much of a processor
	w.signIn(t, ann, "/upload", "Upload", "Drop skins or capes here")
	w.inspect(t, "upload-none")
	w.follow(t, "Home", "/", "Hello, Ann")
	w.takesDrops(t)
	files := []dropped{
		{"Robot.png", file(t, "a.png", artwork.Robot())},
		{"Ranger.png", file(t, "b.png", artwork.Ranger())},
		{"Sunrise.png", file(t, "c.png", artwork.Sunrise())},
		{"Wooden Doll.png", file(t, "d.png", artwork.Default())},
	}
	w.drag(t, "main", false, files...)
	w.sees(t, "Drop the files to upload them")
	w.inspect(t, "upload-drop")
	w.drag(t, "main", true, files...)
	w.isAt(t, "/upload", "Upload")
	for _, name := range []string{"Robot", "Ranger", "Sunrise", "Wooden Doll"} {
		w.await(t, ready(name))
	}
	w.await(t, `!document.querySelector(".overlay")`)
	for name, want := range map[string]string{"Robot": "steve", "Ranger": "alex", "Sunrise": "cape", "Wooden Doll": "steve"} {
		testenv.Equal(t, w.chosen(t, name), want, "%s is taken for", name)
	}
	w.sees(t, "Everyone (costs ", "Only you (costs ")
	w.await(t, `[...document.querySelectorAll(".drawing canvas")].every((c) => c.checkVisibility({ visibilityProperty: true }) && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(Boolean))`)
	w.inspect(t, "upload")

	w.set(t, "Robot", "type", "alex")
	w.set(t, "Ranger", "public", "private")
	w.pressAndAwait(t, "Cancel the upload of Wooden Doll", `document.activeElement.tagName === "H1"`)
	w.press(t, "Players") // other pages keep the files
	w.isAt(t, "/players", "Players")
	w.press(t, "Upload", "Upload all 3 files")
	w.await(t, `document.body.innerText.split("It is uploaded, and in your closet.").length === 4`)
	w.sees(t, "You have no player yet that could wear it.")
	w.inspect(t, "upload-done")
	var list struct {
		Data []struct {
			Name, Type string
			Public     bool
		}
	}
	ann.Get(t, "/api/textures?uploader=1&sort=newest", &list)
	got := fmt.Sprint(list.Data)
	for _, want := range []string{"{Robot alex true}", "{Ranger alex false}", "{Sunrise cape true}"} {
		testenv.Check(t, strings.Contains(got, want), "the textures are %s; want %s among them", got, want)
	}

	// Files that are there already need no upload; a player wears one.
	ann.AddPlayer(t, "Ann_1")
	w.visit(t, "/upload")
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{files[2].path}))
	w.sees(t, "This picture is here already, so it need not be uploaded.")
	link := eval[string](t, w, `document.querySelector('a[aria-label="Open c"]').getAttribute("href")`)
	testenv.Equal(t, link, "/console/texture?tid=3", "the link leads to")
	w.pressAndSee(t, "Put c on Ann_1", "Ann_1 wears c now.")
	w.pressAndAwait(t, "Players", `document.querySelector('img[alt="Cape of Ann_1, front and back"]')?.naturalWidth > 0`)
}

// A file that is dropped on a player's card is uploaded for that player, and is worn.
func TestDropOnPlayer(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	ann.AddPlayer(t, "Ann_1")
	w.signIn(t, ann, "/players", "Players")
	w.takesDrops(t)
	robot := dropped{"Robot.png", file(t, "Robot.png", artwork.Robot())}
	w.drag(t, ".player", false, robot)
	w.sees(t, "Drop here to wear it as a skin")
	w.drag(t, ".target", false, robot)
	w.await(t, `!document.querySelector(".overlay")`)
	w.inspect(t, "players-drop")
	w.drag(t, ".target", true, robot)
	w.await(t, `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
	w.isAt(t, "/players", "Players")
	w.pressAndSee(t, "Make it public", "Public: everyone can find and use it.")
	testenv.Equal(t, eval[bool](t, w, `fetch("/api/textures/1").then((r) => r.ok)`), true, "visitors see it")

	// One that is refused says why, and changes nothing.
	text := filepath.Join(t.TempDir(), "notes.png")
	testenv.Do(t, os.WriteFile(text, []byte("These are notes."), 0o600))
	w.drag(t, ".player", false, dropped{"notes.png", text})
	w.drag(t, ".target", true, dropped{"notes.png", text})
	w.await(t, `document.querySelector(".notice.failed")?.innerText.includes("notes.png: The file is not a PNG picture.")`)
	w.await(t, `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
}

// A file that is none of a texture says why, and a name that is refused stands at its field.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1", "CORE_UPLOAD_MAX_BYTES=20480")
	w.reduceMotion(t, "reduce") // a figure that turns takes much of a processor
	w.signInAsDemo(t, "/upload", "Upload")
	directory := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(directory, name)
		testenv.Do(t, os.WriteFile(path, content, 0o600))
		return path
	}
	whole := testenv.Must(os.ReadFile(paint(t, "whole.png", 2)))(t)
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{
		write("Notes.png", []byte("These are notes, in place of a picture.")),
		write("Empty.png", nil),
		file(t, "Odd.png", skintest.Noise(1, 65, 64)),
		write("Large.png", make([]byte, 20481)),
		write("Cut.png", whole[:60]),
		write("<b>Fine<b>.png", whole),
	}))
	for name, reason := range map[string]string{
		"Notes": "The file is not a PNG picture.", "Empty": "The file is not a PNG picture.", "Cut": "The file is not a PNG picture.",
		"Odd": "The picture has 65 × 64 pixels", "Large": "The file is too large: it may have 20 kB at most.",
	} {
		w.await(t, fmt.Sprintf(`document.querySelector(%s)?.innerText.includes(%s)`, quote(`article[aria-label="`+name+`"] [role="alert"]`), quote(reason)))
	}
	w.await(t, ready("<b>Fine<b>"))
	w.expect("/api/textures")
	eval[bool](t, w, `((i) => { i.value = ""; i.dispatchEvent(new Event("input", { bubbles: true })); return true; })(document.querySelector('input[id^="name-"]'))`)
	w.press(t, "Upload <b>Fine<b>.png")
	w.await(t, `document.querySelector('input[id^="name-"]').getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "upload-refused")
	eval[bool](t, w, `((i) => { i.value = "Fine"; i.dispatchEvent(new Event("input", { bubbles: true })); return true; })(document.querySelector('input[id^="name-"]'))`)
	w.pressAndSee(t, "Upload Fine", "It is uploaded, and in your closet.")
}

// While the server has had too many files, the others wait, in Chinese, too.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	proxy := &busyProxy{left: map[string]int{}, status: http.StatusTooManyRequests}
	w := plain.open(t, proxy.start(t, s.EdgeURL), "zh-CN")
	w.reduceMotion(t, "reduce") // a figure that turns takes much of a processor
	w.signInAsDemo(t, "/upload", "上传")
	const count = 3
	paths := make([]string, 0, count)
	for i := range count {
		paths = append(paths, paint(t, fmt.Sprintf("机器人 %d.png", i), byte(i)))
	}
	w.expect("/api/textures")
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, paths))
	proxy.refuse(math.MaxInt, "POST", "/api/textures")
	w.pressAndAwait(t, fmt.Sprintf("上传全部 %d 个文件", count), `/文件较多，\d+ 秒后继续。/.test(document.body.innerText)`)
	w.inspect(t, "zh-upload")
	proxy.refuse(0, "POST", "/api/textures")
	w.await(t, fmt.Sprintf(`document.body.innerText.split("已上传，并已加入衣柜。").length === %d`, count+1))
	w.pressAndSee(t, "账号", "此浏览器")
	w.inspect(t, "zh-account")
}

// Chromium shows what is accepted as a texture, but for one file, and refuses what is refused, but for files that lack
// pixels or are no texture.
func TestAcceptedAsByChromium(t *testing.T) {
	t.Parallel()
	const hidden = "a palette with bKGD behind the header" // libpng decodes it
	refused := []string{
		"cut off", "damaged in its pixel data", `checksum of its "IDAT"`, "bad filter type", "palette", // Chromium shows a part
		"pixels; a skin has", "bits a channel", "animated", "only PNG is read",
	}
	files := slices.DeleteFunc(slices.Concat(skintest.Corpus(), skintest.Mutations()), func(file skintest.File) bool {
		return len(file.Data) > 64<<10 || strings.Contains(file.Name, "GiB") // bombs
	})
	sources := make([][]byte, len(files))
	for i, file := range files {
		sources[i] = file.Data
	}
	w := plain.open(t, "data:", "en")
	shown := eval[[]bool](t, w, fmt.Sprintf(`Promise.all(%s.map((file) => {
		const image = new Image();
		image.src = "data:image/png;base64," + file;
		return image.decode().then(() => true, () => false);
	}))`, testenv.Must(json.Marshal(sources))(t)))
	var both, neither int
	for i, file := range files {
		_, err := skin.ParseUpload(file.Data, file.Type, skin.DefaultLimits())
		hasReason := err != nil && slices.ContainsFunc(refused, func(reason string) bool { return strings.Contains(err.Error(), reason) })
		switch isAccepted := err == nil; {
		case shown[i] && isAccepted:
			both++
		case !shown[i] && !isAccepted:
			neither++
		case shown[i] && !hasReason || !shown[i] && file.Name != hidden:
			t.Errorf("%s: shown %t; %v", file.Name, shown[i], err)
		}
	}
	testenv.Check(t, both > 500 && neither > 200, "%d files are shown and accepted, %d neither; want more of each", both, neither)
}
