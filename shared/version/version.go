// Package version says what a program was built from.
package version

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
)

// linked is what "git describe --always --dirty" says of the sources. The linker is
// told it, as Go is told to leave Git alone.
var linked string

// Build is what a program was built from.
type Build struct {
	Version  string // that of a release, as v1.2.3, or what Git says since it; "devel" before the first
	Revision string // of the sources; "unknown" without Git
	Go       string // go1.26.8
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

// release matches the names of releases.
var release = regexp.MustCompile(`^v[0-9]`)

// buildOf returns the build that Go and the linker tell of. Sources that were changed since
// their revision are marked.
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
