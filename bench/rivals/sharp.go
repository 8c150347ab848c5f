package rivals

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sharpFiles are our own server and what npm is to install for it, without an address
// of where that comes from: it is whatever registry npm is set to.
//
//go:embed sharp
var sharpFiles embed.FS

// sharpProgram returns sharp as it lies in a directory of modules.
func sharpProgram(modules string) Program {
	return Program{
		Name: "sharp", Beside: "new pictures",
		Install: "Node 20.9 or later with npm, newer than Debian 12 has, from where Node is made; then copy bench/rivals/sharp/package*.json to a directory and run npm ci there",
		version: func(ctx context.Context, p Program) (string, error) {
			const ask = `const s = require('sharp');
process.stdout.write(` + "`sharp ${s.versions.sharp}, libvips ${s.versions.vips} of ${s.concurrency()} thread, Node ${process.versions.node}`" + `)`
			command := exec.CommandContext(ctx, "node", "-e", ask)
			command.Env = sharpEnviron(modules)
			var failure strings.Builder
			command.Stderr = &failure
			out, err := command.Output()
			switch {
			case errors.Is(err, exec.ErrNotFound):
				return "", p.missing(errors.New("there is no Node"))
			case strings.Contains(failure.String(), "MODULE_NOT_FOUND"):
				return "", p.missing(fmt.Errorf("it is not in %s", modules))
			case err != nil:
				return "", p.missing(fmt.Errorf("%w: %s", err, failure.String()))
			}
			return string(out), nil
		},
	}
}

// sharpEnviron has Node find the modules.
func sharpEnviron(modules string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "NODE_PATH=" + filepath.Join(modules, "node_modules")}
}

// InstallSharp has npm install sharp, at the pinned version, into a directory that is
// made for it, unless it is there. It is the one thing here that uses the network. What
// npm says goes to out. A MissingError says that there is no npm, or that it failed.
func InstallSharp(ctx context.Context, modules string, out io.Writer) error {
	program := sharpProgram(modules)
	pinned, err := sharpPinned()
	if err != nil {
		return err
	}
	if version, err := program.Version(ctx); err == nil && strings.HasPrefix(version, "sharp "+pinned+",") {
		return nil
	}
	if err := os.MkdirAll(modules, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := sharpFiles.ReadFile("sharp/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(modules, name), content, 0o600); err != nil {
			return err
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir, npm.Stdout, npm.Stderr = modules, out, out
	if err := npm.Run(); err != nil {
		return program.missing(fmt.Errorf("npm ci: %w", err))
	}
	_, err = program.Version(ctx)
	return err
}

// sharpPinned returns the version that package.json names.
func sharpPinned() (string, error) {
	text, err := sharpFiles.ReadFile("sharp/package.json")
	if err != nil {
		return "", err
	}
	var wanted struct{ Dependencies map[string]string }
	err = json.Unmarshal(text, &wanted)
	return wanted.Dependencies["sharp"], err
}

// StartSharp starts what people write themselves for Node: sharp behind its http
// server, in one process, which draws the faces of the skins in a directory, in which
// they lie as shared/objects keeps them. It keeps nothing. What View.Target names is
// what it is asked for; of another pose it has none. InstallSharp has put sharp into
// the directory of modules.
func StartSharp(ctx context.Context, place Place, textures, modules string) (*Server, error) {
	modules, err := filepath.Abs(modules)
	if err != nil {
		return nil, err
	}
	version, err := sharpProgram(modules).Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	code, err := sharpFiles.ReadFile("sharp/server.js")
	if err != nil {
		return nil, err
	}
	program, err := place.write("sharp", "server.js", string(code))
	if err != nil {
		return nil, err
	}
	p, err := Run(place, "sharp", nil, sharpEnviron(modules), "node", program, host, port, textures)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: "sharp", Version: version, Process: p, Address: address, cannot: onlyFlat}).listening(ctx)
}
