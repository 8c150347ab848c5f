package deploytest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// containersOf are the containers of each program.
var containersOf = map[string][]string{"core": {"core", "migrate"}, "edge": {"edge"}}

// wantEnv checks variables, as NAME=VALUE, of all containers of the program that their names begin with.
func wantEnv(t *testing.T, project *types.Project, variables ...string) {
	t.Helper()
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		program, _, _ := strings.Cut(strings.ToLower(name), "_")
		for _, container := range containersOf[program] {
			got := project.Services[container].Environment[name]
			if got == nil {
				t.Errorf("%s has no %s; want %q", container, name, value)
			} else {
				testenv.Equal(t, *got, value, "%s has %s", container, name)
			}
		}
	}
}

// A setting comes from the operator's file; without that, for settings with a default in
// docker-compose.yml, from the shell or .env.
func TestSettingsOfContainers(t *testing.T) {
	t.Parallel()
	none := compose(t, nil)
	wantEnv(t, none, "CORE_DEMO=false", "CORE_DRAIN_WAIT=4s", "CORE_TRUSTED_PROXIES=10.213.30.0/24",
		"EDGE_TRUSTED_PROXIES=10.213.30.0/24", "EDGE_RENDER_WORKERS=2")

	shell := compose(t, map[string]string{".env": "EDGE_RENDER_WORKERS=3\nVENEER_SUBNET=10.1.0.0/24\n"},
		"CORE_DEMO=1", "CORE_DRAIN_WAIT=5s", "VENEER_TRUSTED_PROXIES=192.0.2.7/32")
	wantEnv(t, shell, "CORE_DEMO=1", "CORE_DRAIN_WAIT=5s", "CORE_TRUSTED_PROXIES=10.1.0.0/24,192.0.2.7/32",
		"EDGE_TRUSTED_PROXIES=10.1.0.0/24,192.0.2.7/32", "EDGE_RENDER_WORKERS=3")
	testenv.Equal(t, *shell.Services["haproxy"].Environment["VENEER_TRUSTED_PROXIES"], "192.0.2.7/32", "haproxy trusts")

	file := compose(t, map[string]string{
		"deploy/compose/core.env": "CORE_DEMO=0\nCORE_DRAIN_WAIT=6s\nCORE_SITE_NAME='Skins & Capes $'\nCORE_TRUSTED_PROXIES=10.2.0.0/16\n",
		"deploy/compose/edge.env": "EDGE_RENDER_WORKERS=4\nEDGE_CACHE_BYTES=1048576\n",
	}, "CORE_DEMO=1", "CORE_DRAIN_WAIT=5s", "CORE_SITE_NAME=Shell", "EDGE_RENDER_WORKERS=3", "VENEER_TRUSTED_PROXIES=192.0.2.7/32")
	wantEnv(t, file, "CORE_DEMO=0", "CORE_DRAIN_WAIT=6s", "CORE_SITE_NAME=Skins & Capes $",
		"CORE_TRUSTED_PROXIES=10.2.0.0/16", "EDGE_RENDER_WORKERS=4", "EDGE_CACHE_BYTES=1048576")
}

// The examples list every setting: either as a commented line, which when uncommented leaves the
// value as it was, or with the place where it is set.
func TestSettingsOfExamples(t *testing.T) {
	t.Parallel()
	line, setElsewhere := regexp.MustCompile(`(?m)^#(\w+)=`), regexp.MustCompile(`(?m)^# (\w+) is not set here: `)
	none := compose(t, nil)
	for program, containers := range containersOf {
		example := read(t, "deploy/compose/"+program+".env.example")
		named, lines := map[string]bool{}, map[string]bool{}
		for _, match := range line.FindAllStringSubmatch(example, -1) {
			named[match[1]], lines[match[1]] = true, true
		}
		for _, match := range setElsewhere.FindAllStringSubmatch(example, -1) {
			named[match[1]] = true
		}
		settings := map[string]bool{}
		for _, match := range regexp.MustCompile(`(?m)^  ([A-Z]+_\w+) `).FindAllStringSubmatch(stack.Help(t, program), -1) {
			settings[match[1]] = true
		}
		cmptest.Same(t, named, settings, "settings of %s in its example", program)

		uncommented := compose(t, map[string]string{"deploy/compose/" + program + ".env": line.ReplaceAllString(example, "$1=")})
		for _, container := range containers {
			before, after := none.Services[container].Environment, uncommented.Services[container].Environment
			for _, name := range slices.Sorted(maps.Keys(before)) {
				if lines[strings.TrimSuffix(name, "_FILE")] && strings.HasSuffix(name, "_FILE") {
					t.Errorf("%s has %s, and the example a line of the setting", container, name)
				}
				testenv.Equal(t, *after[name], *before[name], "%s has %s with all lines of the example", container, name)
			}
			for name := range lines {
				testenv.Check(t, after[name] != nil, "%s does not get %s", container, name)
			}
		}
	}
}
