package baseline

import (
	"context"
	_ "embed" // for the server
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/veneer-skins/veneer/bench/loopback"
)

// sharpServer is the server's source.
//
//go:embed sharp/server.js
var sharpServer string

// sharpProgram returns the sharp in a directory of modules.
func sharpProgram(modules string) Program {
	return Program{
		Name: "sharp", ComparedFor: "new pictures",
		Install: "Node 20.19 or later with npm, newer than Debian 12 has, from where Node is made; then deploy/dev/node",
		version: func(ctx context.Context, p Program) (string, error) {
			const script = `const s = require('sharp');
process.stdout.write(` + "`sharp ${s.versions.sharp}, libvips ${s.versions.vips} of ${s.concurrency()} thread, Node ${process.versions.node}`" + `)`
			command := exec.CommandContext(ctx, "node", "-e", script)
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

// sharpEnviron is the environment in which Node finds the modules.
func sharpEnviron(modules string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "NODE_PATH=" + filepath.Join(modules, "node_modules")}
}

// StartSharp starts a typical Node server: sharp behind Node's http server, in one process, which
// renders the faces of the skins in a directory, stored as by shared/blobstore. It caches nothing.
// View.Target is the request target; it answers 404 for another mode. deploy/dev/node has installed
// sharp in the directory of modules.
func StartSharp(ctx context.Context, env Env, textures, modules string) (*Server, error) {
	modules, err := filepath.Abs(modules)
	if err != nil {
		return nil, err
	}
	version, err := sharpProgram(modules).Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	program, err := env.writeFile("sharp", "server.js", sharpServer)
	if err != nil {
		return nil, err
	}
	p, err := Run(env, "sharp", nil, sharpEnviron(modules), "node", program, host, port, textures)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: "sharp", Version: version, Process: p, Address: address, unsupported: flatOnly}).awaitListening(ctx)
}
