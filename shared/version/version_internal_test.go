package version

import (
	"runtime/debug"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestBuildOf(t *testing.T) {
	t.Parallel()
	f := func(want Build, linked, version string, settings ...debug.BuildSetting) {
		t.Helper()
		info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: version}, Settings: settings}
		testenv.Equal(t, buildOf(info, linked), want, "%q, %q, %v", linked, version, settings)
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	same, changed := debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}

	f(Build{"v1.2.3", "abc", "go1.26"}, "", "v1.2.3", revision, same)
	f(Build{"v1.2.3", "abc-dirty", "go1.26"}, "", "v1.2.3", changed, revision)
	f(Build{"devel", "unknown", "go1.26"}, "", "", changed)
	f(Build{"devel", "unknown", "go1.26"}, "", "(devel)")
	// The linker's version has precedence: it is the same for all programs of a build.
	f(Build{"devel", "8dc993c-dirty", "go1.26"}, "8dc993c-dirty", "(devel)", revision)
	f(Build{"v1.3.0-2-g8dc993c", "v1.3.0-2-g8dc993c", "go1.26"}, "v1.3.0-2-g8dc993c", "v1.2.3", revision)
}

func TestString(t *testing.T) {
	t.Parallel()
	testenv.Equal(t, (Build{"v1.2.3", "abc", "go1.26"}).String(), "v1.2.3, revision abc, go1.26", "the text")
}
