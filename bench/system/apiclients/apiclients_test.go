package apiclients

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// document is the path of the API's OpenAPI document.
const document = "../../../core/api/openapi.yaml"

func absolute(t *testing.T, path string) string {
	t.Helper()
	return testenv.Must(filepath.Abs(path))(t)
}

func command(t *testing.T, directory, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, arguments...)
	c.Dir = directory
	return c
}

// run runs a command to its end and returns its standard output.
func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var failure bytes.Buffer
	c.Stderr = &failure
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out, failure.Bytes())
	}
	return string(out)
}

// nodeModules returns the directory of the Node programs.
func nodeModules(t *testing.T) string {
	t.Helper()
	modules := absolute(t, "../../../.dev/node/apiclients/node_modules")
	_, missing := os.Stat(modules)
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		testenv.Skip(t, "the linters and generators of bench/system/apiclients/package.json are not in .dev/node/apiclients: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
	return modules
}

// node returns a command that runs one of the Node programs, without telemetry.
func node(t *testing.T, modules, directory, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	c := command(t, directory, "node", append([]string{filepath.Join(modules, ".bin", program)}, arguments...)...)
	c.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	return c
}

// project returns a temporary copy of a directory below testdata.
func project(t *testing.T, name string) string {
	t.Helper()
	directory := t.TempDir()
	testenv.Do(t, os.CopyFS(directory, os.DirFS(filepath.Join("testdata", name))))
	return directory
}

// skinFile writes a skin that is different for each seed and returns its path.
func skinFile(t *testing.T, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "skin.png")
	testenv.Do(t, os.WriteFile(path, testenv.Must(skintest.Noise(seed, 64, 64).PNG())(t), 0o600))
	return path
}

// runClient runs a client, which must print a line that begins with "texture ".
func runClient(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if output := run(t, c); !strings.HasPrefix(output, "texture ") {
		t.Errorf("%s said %q", strings.Join(c.Args, " "), output)
	}
}

func TestGoClient(t *testing.T) {
	t.Parallel()
	directory := project(t, "oapi-codegen")
	generated := filepath.Join(directory, "veneer")
	testenv.Do(t, os.Mkdir(generated, 0o755))
	gotool := func(arguments ...string) *exec.Cmd {
		c := command(t, directory, "go", arguments...)
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		return c
	}
	run(t, gotool("tool", "oapi-codegen", "-generate", "types,client", "-package", "veneer", "-o", filepath.Join(generated, "client.gen.go"), absolute(t, document)))
	run(t, gotool("vet", "./..."))
	run(t, gotool("build", "-o", "client", "."))

	site := site.Start(t, blobstoretest.Directory(t).Config)
	runClient(t, command(t, directory, filepath.Join(directory, "client"), site.EdgeURL, skinFile(t, 1)))
}

func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	modules, directory := nodeModules(t), project(t, "typescript")
	testenv.Do(t, os.Symlink(modules, filepath.Join(directory, "node_modules")))
	generated := filepath.Join(directory, "generated")
	testenv.Do(t, os.Mkdir(generated, 0o755))
	run(t, node(t, modules, directory, "openapi-ts", "--no-log-file", "-i", absolute(t, document), "-o", filepath.Join(generated, "hey-api")))
	run(t, node(t, modules, directory, "openapi-typescript", absolute(t, document), "-o", filepath.Join(generated, "default-settings.ts")))
	run(t, command(t, directory, "node", "generate.mjs", absolute(t, document), filepath.Join(generated, "openapi-typescript.ts")))
	run(t, node(t, modules, directory, "tsc", "-p", "."))

	site := site.Start(t, blobstoretest.Directory(t).Config)
	for seed, program := range []string{"hey-api.js", "openapi-typescript.js"} {
		runClient(t, command(t, directory, "node", filepath.Join("out", program), site.EdgeURL, skinFile(t, uint64(seed))))
	}
}

// A warning is fixed, or switched off in the linter's configuration with a reason.
func TestLinters(t *testing.T) {
	t.Parallel()
	modules := nodeModules(t)
	t.Run("redocly", func(t *testing.T) {
		t.Parallel()
		// redocly exits with 0 even if there are warnings.
		output := run(t, node(t, modules, ".", "redocly", "lint", "--config", "redocly.yaml", "--format", "json", document))
		var report struct {
			Totals   struct{ Errors, Warnings, Ignored int }
			Problems []json.RawMessage
		}
		if err := json.Unmarshal([]byte(output), &report); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		testenv.Check(t, report.Totals.Errors+report.Totals.Warnings == 0, "redocly found %s", report.Problems)
	})
	t.Run("spectral", func(t *testing.T) {
		t.Parallel()
		run(t, node(t, modules, ".", "spectral", "lint", "--fail-severity", "hint", "--ruleset", "spectral.yaml", document))
	})
}
