package e2e

import (
	"encoding/json"
	"image/png"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/launchers"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

var (
	link        = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notAnchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeBlock   = regexp.MustCompile("(?ms)^```.*?^```$")
	target      = regexp.MustCompile(`\bmake ([a-z-]+)`)
	// notRun is the line that marks a page with commands that no test runs.
	notRun = regexp.MustCompile(`(?m)^\*No test runs the commands of this page: .+\.\*$`)
)

// ran has the tests that run commands, by page and label; "*" stands for all labels.
var ran = map[string]map[string]string{
	"README.md":                         {"demo": "TestDemoCommands", "make": "TestMakeTargets"},
	"docs/contributing.md":              {"make": "TestMakeTargets"},
	"docs/operations/administration.md": {"": "TestDemoCommands"},
	"docs/operations/backup.md":         {"*": "TestRestore"},
	"docs/operations/launchers.md":      {"join": "TestJoinCommands"},
}

// pages returns the documents that people read, from the top.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/operations/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			relative, err := filepath.Rel(top, path)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, relative)
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
		for _, b := range blocksOf(t, page) {
			label := strings.Join(b.labels, " ")
			if marked || label == "not-run" || by["*"] != "" || by[label] != "" {
				continue
			}
			t.Errorf("%s: no test runs this, and nothing says so:\n%s", page, b.commands)
		}
	}
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
	if named < 20 {
		t.Errorf("%d targets are named; want 20 or more", named)
	}
}

// code returns the code in a page, in blocks and in lines.
func code(content string) []string {
	return append(codeBlock.FindAllString(content, -1), regexp.MustCompile("`[^`\n]+`").FindAllString(codeBlock.ReplaceAllString(content, ""), -1)...)
}

// The README's commands and those of the administration page do what the pages say, against
// what make run starts: both programs with demo data, textures in a directory.
func TestDemoCommands(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := stack.NewCore(t, files)
	core.Set("CORE_DEMO", "1")
	s := stack.StartWith(t, core)

	// The pages' paths, from the top of the repository.
	directory := t.TempDir()
	for path, to := range map[string]string{
		".dev/bin/core": stack.Binary(t, "core"), "deploy/traveller.png": filepath.Join(top, "deploy/traveller.png"), ".dev/textures": strings.TrimPrefix(files.URL, "file://"),
	} {
		absolute, err := filepath.Abs(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(directory, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(absolute, filepath.Join(directory, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(directory, ".dev/secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, ".dev/secrets/database_url"), []byte(core.Setting("CORE_DATABASE_URL")), 0o600); err != nil {
		t.Fatal(err)
	}

	readme := runDemo(t, directory, s.EdgeURL, "README.md", "demo")
	if !strings.Contains(readme, `"code":0`) {
		t.Errorf("the README's commands print %s; want a success", readme)
	}
	file, err := os.Open(filepath.Join(directory, "head.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if head, err := png.DecodeConfig(file); err != nil || head.Width != 256 {
		t.Errorf("the README's head is %d pixels wide, %v; want 256", head.Width, err)
	}

	administration := runDemo(t, directory, s.EdgeURL, "docs/operations/administration.md", "")
	for _, want := range []string{`"name":"Rude"`, `"reason":"This is rude."`, "\n404\n", `"code":-1`, `"title":"Maintenance"`, `"action":"report.`} {
		if !strings.Contains(administration, want) {
			t.Errorf("the commands of the administration page do not print %s:\n%s", want, administration)
		}
	}
}

// The page on launchers brings the demo's player onto a game server, where it wears its textures.
func TestJoinCommands(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Abs(filepath.Join(top, ".dev/node/launchers/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat(modules)
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		testenv.Skip(t, "minecraft-protocol is not in .dev/node/launchers: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
	site := launchers.Start(t, blobstoretest.Directory(t).Config, "CORE_DEMO=1")
	_, port, err := net.SplitHostPort(stack.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	var locked struct{ Version string }
	if err := json.Unmarshal([]byte(read(t, ".dev/node/launchers/node_modules/minecraft-protocol/package.json")), &locked); err != nil {
		t.Fatal(err)
	}
	output := runDemo(t, t.TempDir(), site.URL, "docs/operations/launchers.md", "join",
		"npm install minecraft-protocol@"+locked.Version, "ln -s '"+modules+"' node_modules", "25565", port)
	urls := regexp.MustCompile(`(SKIN|CAPE): {\s+url: '(.+)'`).FindAllStringSubmatch(output, -1)
	if !strings.HasPrefix(output, "Demo is on the server in {") || len(urls) != 2 {
		t.Fatalf("the commands print %s", output)
	}
	for _, url := range urls {
		if _, status := fetch(t, url[2]); status != http.StatusOK {
			t.Errorf("%s: %d", url[2], status)
		}
	}
}

// runDemo runs a page's blocks of a label in one shell, with replacements, and returns what they
// print.
func runDemo(t *testing.T, directory, edge, page, label string, replaced ...string) string {
	t.Helper()
	script := "set -euo pipefail\n"
	for _, b := range blocksOf(t, page) {
		if strings.Join(b.labels, " ") == label {
			script += b.commands
		}
	}
	script = strings.NewReplacer(append(replaced, "http://127.0.0.1:8081", edge, "/tmp/", directory+"/")...).Replace(script)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = directory
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands of %s: %v\n%s", page, err, output)
	}
	return string(output)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
