package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// env is the servers, each started once for all scenarios that use it. They share one processor, as
// only one of them works at a time, and the load has another. A failure ends the run as it ends a
// test.
type env struct {
	Options

	serverCPU, loadCPU int
	settings           []results.Setting
	programs           []results.Program // that took part, and the missing ones

	site        *fixture.Site
	usedPlayers int // number of players, from the first, with views among the addresses
	views       *baseline.Record
	routes      *baseline.Record
	live        *liveStack
	zipf        *zipfWorkload
	targets     map[string]*target // what open has started

	mappingsWarm bool // the edge has the mappings of the skins to render
	newPictures  int  // number of new pictures requested in mixed days
}

func (e *env) addSetting(name string, value any) {
	e.settings = append(e.settings, results.Setting{Name: name, Value: fmt.Sprint(value)})
}

// progress prints a slow step on a line of its own, and its duration when it is done.
func (e *env) progress(what string, args ...any) (done func()) {
	began := time.Now()
	fmt.Fprintf(e.Out, "\r    "+what+" … ", args...)
	return func() { fmt.Fprintf(e.Out, "%.0f s\n", time.Since(began).Seconds()) }
}

func (e *env) duration(full time.Duration) time.Duration {
	if e.Quick {
		return full / 10
	}
	return full
}

// quick returns a number, or a smaller one in a quick run.
func (e *env) quick(full, quick int) int {
	if e.Quick {
		return quick
	}
	return full
}

// open starts the server of a program once, by its name and a word for the use, on the processor of the
// servers. The target has a reason for not taking part if the program is not installed.
func (e *env) open(name, use string, program baseline.Program, start func() *baseline.Server) *target {
	if opened, ok := e.targets[use+name]; ok {
		return opened
	}
	t := &target{name: name}
	e.targets[use+name] = t
	if t.version, t.missing = e.version(program); t.missing != nil {
		return t
	}
	defer e.progress("starting %s", name)()
	e.pinned(func() { t.use(start()) })
	return t
}

// veneer is Veneer itself, whose version is the commit of the run.
var veneer baseline.Program

// version returns the version of a program that takes part, or why it does not.
func (e *env) version(of baseline.Program) (version string, missing error) {
	if of.Name == veneer.Name {
		return "", nil
	}
	version, missing = of.Version(e.Context())
	listed := results.Program{Name: of.Name, Version: version}
	if missing != nil {
		listed.Version = missing.Error()
	}
	if !slices.Contains(e.programs, listed) {
		e.programs = append(e.programs, listed)
	}
	return version, missing
}

// pinned starts programs on the processor of the servers: they inherit the affinity.
func (e *env) pinned(start func()) {
	defer testenv.Must(load.Pin(e.serverCPU))(e)()
	start()
}

// The views that the fixture's edge has cached, and the size of caches in front of it, which is
// more than all answers need.
const (
	knownViews      = 100_000
	knownViewsQuick = 500
	knownRoutes     = 100_000
	cacheBytes      = 1 << 30

	// fixturePlayers is the number of players. Half of their skins are only used for new
	// pictures.
	fixturePlayers      = 20_000
	fixturePlayersQuick = 110
)

func (e *env) fixture() *fixture.Site {
	if e.site != nil {
		return e.site
	}
	var settings []string
	if e.Quick { // maybe beside tests, to which the edge's render threads yield
		settings = append(settings, renderTimeoutSetting)
	}
	defer e.progress("building a fixture")()
	e.pinned(func() { e.site = fixture.Open(e, e.quick(fixturePlayers, fixturePlayersQuick), settings...) })
	e.addSetting("behind the edges, but for freshness", "a fake core that answers immediately, and files in a directory")
	return e.site
}

// knownAnswers makes the fixture's edge cache the views, the texture files of their players, and one
// avatar by name, and returns the answers.
func (e *env) knownAnswers() *baseline.Record {
	if e.views != nil {
		return e.views
	}
	count, site := e.quick(knownViews, knownViewsQuick), e.fixture()
	defer e.progress("rendering %d views", count)()
	e.addSetting("different views in memory", count)
	var addresses []string
	addresses, e.usedPlayers = site.Views(count)
	addresses = append(append(addresses, site.TextureFiles(e.usedPlayers)...), site.AvatarByName())
	e.views = baseline.RecordHits(e, site.Edge, addresses)
	if different := len(e.views.Bodies) - e.usedPlayers; different < count { // besides the files
		e.Fatalf("%d views are %d pictures", count, different)
	}
	return e.views
}

// routeAnswers makes the fixture's edge cache the answers to addresses of all routes.
func (e *env) routeAnswers() *baseline.Record {
	if e.routes == nil {
		addresses := e.fixture().Addresses(e.quick(knownRoutes, fixture.Patterns()+1)) // of two players
		defer e.progress("requesting %d addresses of all routes", len(addresses))()
		e.addSetting("addresses of all routes", len(addresses))
		e.routes = baseline.RecordHits(e, e.site.Edge, addresses)
	}
	return e.routes
}

// isView, isFile and isHead report the kind of an address of the record.
func isView(target string) bool { return !isFile(target) && !isHead(target) }
func isFile(target string) bool { return strings.HasPrefix(target, "/textures/") }
func isHead(target string) bool { return strings.HasPrefix(target, "/avatar/player/") }

// unusedSkins returns the hashes of the skins that are in none of the addresses.
func (e *env) unusedSkins() []skin.Hash {
	e.knownAnswers()
	return e.site.Skins[e.usedPlayers:]
}
