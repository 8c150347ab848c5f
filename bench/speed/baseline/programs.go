package baseline

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Program is a program or library that Veneer is compared with.
type Program struct {
	Name        string // as tables call it
	ComparedFor string // what it is compared for
	Install     string // how to install it; empty if it is part of this program

	version func(ctx context.Context, p Program) (string, error)
}

// Version returns the name and the version that the program reports itself, and a MissingError if
// it is not installed.
func (p Program) Version(ctx context.Context) (string, error) { return p.version(ctx, p) }

// missing returns the error that the program is not installed, with a cause, if there is one.
func (p Program) missing(cause error) error {
	return &MissingError{What: p.Name, Install: p.Install, Cause: cause}
}

// Programs returns everything that Veneer is compared with; modules is the directory of Node
// modules that deploy/dev/node installs.
func Programs(modules string) []Program {
	return []Program{
		fasthttpProgram, nginxProgram, varnishProgram, sharpProgram(modules), imagePNGProgram, argon2Program, reencodeProgram, haproxyProgram,
		pgbenchProgram,
		{Name: "libwebp", ComparedFor: "the encoder of pictures", Install: "apt-get install libwebp-dev pkg-config", version: versionFromOutput(regexp.MustCompile(`(?m)^([\d.]+)$`), "pkg-config", "--modversion", "libwebp")},
		{Name: "libvips", ComparedFor: "the encoder of pictures", Install: "apt-get install libvips-dev pkg-config", version: versionFromOutput(regexp.MustCompile(`(?m)^([\d.]+)$`), "pkg-config", "--modversion", "vips")},
	}
}

var (
	fasthttpProgram = Program{Name: "bare", ComparedFor: "hits", version: moduleVersion("github.com/valyala/fasthttp")}

	nginxProgram = Program{
		Name: "nginx", ComparedFor: "hits, from files and as a cache in front of the edge",
		Install: "apt-get install nginx-light, and have /usr/sbin in PATH", version: versionFromOutput(regexp.MustCompile(`nginx/(\S+)`), "nginx", "-v"),
	}

	varnishProgram = Program{
		Name: "Varnish", ComparedFor: "hits, as a cache in front of the edge",
		Install: "apt-get install varnish, and have /usr/sbin in PATH", version: versionFromOutput(regexp.MustCompile(`\(varnish-(\S+)`), "varnishd", "-V"),
	}

	imagePNGProgram = Program{Name: "image/png", ComparedFor: "new pictures", version: moduleVersion("golang.org/x/image")}

	pgbenchProgram = Program{Name: "pgbench", ComparedFor: "the API", Install: "apt-get install postgresql", version: pgbenchVersion}

	argon2Program = Program{Name: "argon2id", ComparedFor: "sign-in", version: moduleVersion("golang.org/x/crypto")}

	reencodeProgram = Program{Name: "image/png and a file", ComparedFor: "uploads", version: func(_ context.Context, p Program) (string, error) {
		return p.Name + " " + runtime.Version(), nil
	}}
)

// versionFromOutput returns a version function that runs a command: the version is what the
// pattern's group matches in its output.
func versionFromOutput(pattern *regexp.Regexp, command ...string) func(context.Context, Program) (string, error) {
	return func(ctx context.Context, p Program) (string, error) {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return "", p.missing(nil)
		case err != nil:
			return "", p.missing(fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out))
		}
		match := pattern.FindSubmatch(out)
		if match == nil {
			return "", fmt.Errorf("%s names no version: %s", strings.Join(command, " "), out)
		}
		return p.Name + " " + string(match[1]), nil
	}
}

// moduleVersion returns the version of a linked module, and of Go.
func moduleVersion(module string) func(context.Context, Program) (string, error) {
	return func(context.Context, Program) (string, error) {
		version := "of an unknown version"
		if build, ok := debug.ReadBuildInfo(); ok {
			for _, m := range build.Deps {
				if m.Path == module {
					version = m.Version
				}
			}
		}
		return module + " " + version + ", " + runtime.Version(), nil
	}
}

// PgbenchVersion returns the name and the version of pgbench, and a MissingError if it is not
// installed.
func PgbenchVersion(ctx context.Context) (string, error) { return pgbenchProgram.Version(ctx) }

// pgbenchVersion runs pgbench, which Debian keeps out of PATH.
func pgbenchVersion(ctx context.Context, p Program) (string, error) {
	path := "pgbench"
	if match, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(match) > 0 { // the pattern is well-formed
		path = match[len(match)-1]
	}
	return versionFromOutput(regexp.MustCompile(`PostgreSQL\) (\S+)`), path, "--version")(ctx, p)
}
