package e2e

import (
	"encoding/json"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/launchers"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

var (
	link        = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notAnchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeBlock   = regexp.MustCompile("(?ms)^```.*?^```$")
	target      = regexp.MustCompile(`\bmake ([a-z-]+)`)
	// notRun is the comment that marks a page with commands that no test runs.
	notRun = regexp.MustCompile(`(?m)^<!-- No test runs the commands of this page: .+\. -->$`)
)

// ran has the tests that run commands, by page and label; "*" stands for all labels.
var ran = map[string]map[string]string{
	"README.md":                         {"demo": "TestDemoCommands", "make": "TestMakeTargets"},
	"docs/contributing.md":              {"make": "TestMakeTargets"},
	"docs/operations/administration.md": {"": "TestDemoCommands"},
	"docs/operations/backup.md":         {"*": "TestRestore"},
	"docs/operations/containers.md":     {"install": "TestEngine", "first-user": "TestEngine", "settings": "TestEngine", "secret": "TestEngine"},
	"docs/operations/upgrades.md":       {"compose-upgrade": "TestEngine"},
	"docs/operations/launchers.md":      {"join": "TestJoinCommands"},
}

// pages returns the documents that people read, from the top.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/operations/*.md"} {
		for _, path := range testenv.Must(filepath.Glob(filepath.Join(top, pattern)))(t) {
			paths = append(paths, testenv.Must(filepath.Rel(top, path))(t))
		}
	}
	if len(paths) < 15 {
		t.Fatalf("%d documents; want 15 or more", len(paths))
	}
	return paths
}

// Links between documents lead to files and headings that exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(top, to)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s: %s has no heading %s", page, to, anchor)
			}
		}
	}
}

// The index of the documents has all of them.
func TestIndexOfDocuments(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		path, isBelow := strings.CutPrefix(page, "docs/")
		testenv.Check(t, !isBelow || path == "README.md" || strings.Contains(index, "("+path+")"), "docs/README.md has no link to %s", page)
	}
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(content string) (anchors []string) {
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(content, ""), -1) {
		anchors = append(anchors, strings.ReplaceAll(notAnchored.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return anchors
}

// Each block of commands is run by a test, or its page or its label says that none runs it.
func TestCommandsAreRunOrMarked(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		marked := notRun.MatchString(read(t, page))
		by := ran[page]
		if marked && len(by) > 0 {
			t.Errorf("%s says that no test runs its commands, but %v does", page, by)
		}
		for _, b := range stack.Blocks(t, top, page) {
			label := strings.Join(b.Labels, " ")
			if marked || label == "not-run" || by["*"] != "" || by[label] != "" {
				continue
			}
			t.Errorf("%s: no test runs this, and nothing says so:\n%s", page, b.Commands)
		}
	}
}

var (
	// settingRow matches a row of docs/settings.md, and its default.
	settingRow = regexp.MustCompile("(?m)^\\| `((?:CORE|EDGE)_(\\w+))` \\| (?:`([^`]*)`|\\w+) \\|")
	// namedLimit matches a setting in a text, by its whole name, as …_NAME for both programs or as
	// NAME… for all that begin so; and a number after it.
	namedLimit = regexp.MustCompile("`(CORE_|EDGE_|…_)([A-Z0-9_]+)(…?)`(?: ([0-9][0-9,]*)(?: (KiB|MiB|s)\\b)?)?")
	// limitName matches the names of limits.
	limitName = regexp.MustCompile(`_(LIMIT|QUOTA)_|_(BYTES|CONCURRENCY|CONNECTIONS|QUEUE|REQUESTS|TOKENS|PER_[A-Z]+)$`)
)

// The tables of docs/operations/security.md name every limit, with its default.
func TestSecurityPageNamesLimits(t *testing.T) {
	t.Parallel()
	const page = "docs/operations/security.md"
	settings, named, checked := settingRow.FindAllStringSubmatch(read(t, "docs/settings.md"), -1), map[string]bool{}, 0
	_, rest, _ := strings.Cut(read(t, page), "## What one client can hold\n")
	tables, _, _ := strings.Cut(rest, "\n## ")
	for _, match := range namedLimit.FindAllStringSubmatch(tables, -1) {
		text, program, name, isPrefix, number, unit := match[0], match[1], match[2], match[3] != "", strings.ReplaceAll(match[4], ",", ""), match[5]
		exists := false
		for _, setting := range settings {
			ofProgram := program == "…_" || strings.HasPrefix(setting[1], program)
			isNamed := setting[2] == name || isPrefix && strings.HasPrefix(setting[2], name)
			if !ofProgram || !isNamed {
				continue
			}
			exists, named[setting[1]] = true, true
			if number == "" || isPrefix {
				continue
			}
			checked++
			want := setting[3]
			if factor := map[string]int{"KiB": 1 << 10, "MiB": 1 << 20}[unit]; factor > 0 {
				n := testenv.Must(strconv.Atoi(want))(t)
				want = strconv.Itoa(n / factor)
			}
			if number+strings.Trim(unit, "KMiB") != want {
				t.Errorf("%s: the default of %s is %s, and not %s", page, setting[1], setting[3], text)
			}
		}
		testenv.Check(t, exists, "%s: there is no setting %s", page, text)
	}
	for _, setting := range settings {
		if limitName.MatchString(setting[1]) && !named[setting[1]] {
			t.Errorf("%s: the tables of what one client can hold lack %s, which is %s", page, setting[1], setting[3])
		}
	}
	testenv.Check(t, checked >= 25, "%s: only %d defaults are named", page, checked)
}

// TestMakeTargets looks for the targets that documents name. .ci/run runs the main ones.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile, named := read(t, "Makefile"), 0
	for _, page := range pages(t) {
		for _, match := range target.FindAllStringSubmatch(strings.Join(code(read(t, page)), "\n"), -1) {
			named++
			if !regexp.MustCompile(`(?m)^` + match[1] + `:`).MatchString(makefile) {
				t.Errorf("%s: there is no target of make %s", page, match[1])
			}
		}
	}
	testenv.Check(t, named >= 20, "%d targets are named; want 20 or more", named)
}

// code returns the code in a page, in blocks and in lines.
func code(content string) []string {
	return append(codeBlock.FindAllString(content, -1), regexp.MustCompile("`[^`\n]+`").FindAllString(codeBlock.ReplaceAllString(content, ""), -1)...)
}

// The commands of the README and of the administration page do what the pages say, against
// what make run starts: both programs with demo data, textures in a directory.
func TestDemoCommands(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	s := site.Start(t, files, "CORE_DEMO=1")

	// The pages' paths, from the top of the repository.
	directory := t.TempDir()
	for path, to := range map[string]string{
		".dev/bin/core": stack.Binary(t, "core"), "deploy/traveller.png": filepath.Join(top, "deploy/traveller.png"), ".dev/textures": strings.TrimPrefix(files.URL, "file://"),
	} {
		absolute := testenv.Must(filepath.Abs(to))(t)
		testenv.Do(t, os.MkdirAll(filepath.Join(directory, filepath.Dir(path)), 0o700))
		testenv.Do(t, os.Symlink(absolute, filepath.Join(directory, path)))
	}
	testenv.Do(t, os.MkdirAll(filepath.Join(directory, ".dev/secrets"), 0o700))
	url := filepath.Join(directory, ".dev/secrets/database_url")
	testenv.Do(t, os.WriteFile(url, []byte(s.Core.Setting("CORE_DATABASE_URL")), 0o600))

	readme := runDemo(t, directory, s.EdgeURL, "README.md", "demo")
	testenv.Contains(t, readme, `"code":0`, "what the README's commands print")
	file := testenv.Must(os.Open(filepath.Join(directory, "head.png")))(t)
	defer func() { _ = file.Close() }()
	if head, err := png.DecodeConfig(file); err != nil || head.Width != 256 {
		t.Errorf("the README's head is %d pixels wide, %v; want 256", head.Width, err)
	}

	// Its pictures are what the addresses below them show.
	first, second, _ := strings.Cut(read(t, "README.md"), "|---|")
	pictures, addresses := regexp.MustCompile(`\((docs/images/demo-\w+\.png)\)`).FindAllStringSubmatch(first, -1), regexp.MustCompile("\\| `([^`]+)` ").FindAllStringSubmatch(second, -1)
	testenv.Equal(t, len(pictures), 3, "pictures of the README")
	for at, picture := range pictures {
		shown := httpservertest.Get(t, s.EdgeURL+addresses[at][1])
		testenv.Check(t, shown.Body == read(t, picture[1]), "%s: %d, and not %s", addresses[at][1], shown.Status, picture[1])
	}

	administration := runDemo(t, directory, s.EdgeURL, "docs/operations/administration.md", "")
	for _, want := range []string{`"name":"Rude"`, `"reason":"This is rude."`, "\n404\n", `"code":-1`, `"title":"Maintenance"`, `"action":"report.`} {
		testenv.Contains(t, administration, want, "what the commands of the administration page print")
	}
}

// The page on launchers brings the demo's player onto a game server, where it wears its textures.
func TestJoinCommands(t *testing.T) {
	t.Parallel()
	modules := testenv.Must(filepath.Abs(filepath.Join(top, ".dev/node/launchers/node_modules")))(t)
	_, missing := os.Stat(modules)
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		testenv.Skip(t, "minecraft-protocol is not in .dev/node/launchers: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
	site := launchers.Start(t, blobstoretest.Directory(t).Config, "CORE_DEMO=1")
	_, port := stack.HostPort(stack.FreeAddress(t))
	var locked struct{ Version string }
	manifest := read(t, ".dev/node/launchers/node_modules/minecraft-protocol/package.json")
	testenv.Do(t, json.Unmarshal([]byte(manifest), &locked))
	output := runDemo(t, t.TempDir(), site.URL, "docs/operations/launchers.md", "join",
		"npm install minecraft-protocol@"+locked.Version, "ln -s '"+modules+"' node_modules", "25565", port)
	urls := regexp.MustCompile(`(SKIN|CAPE): {\s+url: '(.+)'`).FindAllStringSubmatch(output, -1)
	if !strings.HasPrefix(output, "Demo is on the server in {") || len(urls) != 2 {
		t.Fatalf("the commands print %s", output)
	}
	for _, url := range urls {
		_, status := fetch(t, url[2])
		testenv.Equal(t, status, http.StatusOK, "%s", url[2])
	}
}

// runDemo runs a page's blocks of a label in one shell, with replacements, and returns what they
// print.
func runDemo(t *testing.T, directory, edge, page, label string, replaced ...string) string {
	t.Helper()
	script := "set -euo pipefail\n"
	for _, b := range stack.Blocks(t, top, page) {
		if strings.Join(b.Labels, " ") == label {
			script += b.Commands
		}
	}
	script = strings.NewReplacer(append(replaced, "http://127.0.0.1:8081", edge, "/tmp/", directory+"/")...).Replace(script)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = directory
	return stack.MustRun(t, shell)
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(testenv.Must(os.ReadFile(filepath.Join(top, path)))(t))
}

// Every address that docs/mods.md tells players to set has the player's skin, or its profile: as
// it is stored, or as a sheet of 64 × 32 pixels.
func TestModsPage(t *testing.T) {
	t.Parallel()
	s := site.Start(t, blobstoretest.Directory(t).Config)
	ann := signUp(t, s.CoreURL)
	uploaded := upload(t, ann, "first", drawSheet(10))
	ann.SetSkin(t, ann.AddPlayer(t, "Ann_1"), uploaded.TID)

	file := ""
	// A file is dated by its last change, from the second after it.
	testenv.Eventually(t, "the skin can be fetched, with a date", func() bool {
		response := httpservertest.Get(t, s.EdgeURL+"/skin/Ann_1.png")
		file = response.Body
		return response.Status == http.StatusOK && response.Header.Get("Last-Modified") != ""
	})
	if httpservertest.Get(t, s.EdgeURL+"/textures/"+uploaded.Hash).Body != file {
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
		response := httpservertest.Get(t, s.EdgeURL+path)
		status, content := response.Status, response.Body
		config, err := png.DecodeConfig(strings.NewReader(content))
		isCape := strings.Contains(path, "cape") || strings.Contains(strings.ToLower(path), "cloaks")
		switch {
		case isRoot && status == http.StatusOK && strings.Contains(content, `"skins":{"default":"`+uploaded.Hash+`"}`):
			profiles++
		case isCape && status == http.StatusNotFound: // the player wears none
			capes++
		case status == http.StatusOK && content == file:
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
}
