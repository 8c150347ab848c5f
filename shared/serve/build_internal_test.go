package serve

import (
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	t.Parallel()

	f := func(want [3]string, version string, settings ...debug.BuildSetting) {
		t.Helper()
		version, goVersion, revision := buildOf(&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: version}, Settings: settings})
		if got := [3]string{version, goVersion, revision}; got != want {
			t.Errorf("%v: %q; want %q", settings, got, want)
		}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}

	f([3]string{"v1.2.3", "go1.26", "abc"}, "v1.2.3", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"})
	f([3]string{"v1.2.3", "go1.26", "abc+modified"}, "v1.2.3", debug.BuildSetting{Key: "vcs.modified", Value: "true"}, revision)
	f([3]string{"unknown", "go1.26", "unknown"}, "", debug.BuildSetting{Key: "vcs.modified", Value: "true"})
}
