package serve

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/VictoriaMetrics/metrics"
)

// linked is the revision that the linker was told, as Go is told to leave Git alone.
var linked string

// exposeBuild has /metrics say what the program was built from.
func exposeBuild() {
	version, goVersion, revision := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion, revision = buildOf(info)
	}
	revision = cmp.Or(linked, revision)
	name := fmt.Sprintf("veneer_build_info{version=%q,go_version=%q,revision=%q}", version, goVersion, revision)
	metrics.GetOrCreateGauge(name, func() float64 { return 1 })
}

// buildOf returns the version of a program, of Go, and of the sources. Sources that
// were changed since are marked.
func buildOf(info *debug.BuildInfo) (version, goVersion, revision string) {
	modified := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "+modified"
		}
	}
	if revision != "" {
		revision += modified
	}
	return cmp.Or(info.Main.Version, "unknown"), info.GoVersion, cmp.Or(revision, "unknown")
}
