// Package version has the version of the program's build.
package version

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
)

// linked is the output of "git describe --always --dirty". The linker sets it (-X), as builds
// disable Go's own stamping.
var linked string

// Build is the version of a build.
type Build struct {
	Version  string // of a release, as v1.2.3, or of git describe since then; "devel" before the first
	Revision string // of the sources; "unknown" without Git
	Go       string // such as go1.26.8
}

// String returns all three for people.
func (b Build) String() string {
	return fmt.Sprintf("%s, revision %s, %s", b.Version, b.Revision, b.Go)
}

// Current returns the build of the running program.
func Current() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, linked)
}

// release matches versions of releases.
var release = regexp.MustCompile(`^v[0-9]`)

// buildOf returns the build from Go's build info and the linker's version. -dirty marks
// sources that were changed since the revision.
func buildOf(info *debug.BuildInfo, linked string) Build {
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "-dirty"
		}
	}
	if revision != "" {
		revision += modified
	}
	b := Build{Version: "devel", Revision: cmp.Or(linked, revision, "unknown"), Go: cmp.Or(info.GoVersion, "unknown")}
	for _, version := range []string{linked, info.Main.Version} {
		if release.MatchString(version) {
			b.Version = version
			break
		}
	}
	return b
}
