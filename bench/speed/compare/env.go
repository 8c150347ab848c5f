package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/skin"
)

// env is the servers, each started once for all scenarios that use it. They share one processor, as
// only one of them works at a time, and the load has another.
type env struct {
	Options

	serverEnv baseline.Env // of the servers
	loadCPU   int
	closers   []func()
	settings  []results.Setting

	live        *liveStack
	fixture     *fixture.Site
	usedPlayers int // number of players, from the first, with views among the addresses
	zipf        *zipfWorkload
	record      *baseline.Record
	servers     map[string]*baseline.Server
	tags        map[*baseline.Server][]string // of the addresses, by server
	missing     map[string]*baseline.MissingError

	mappingsWarm bool            // the edge has the mappings of the skins to render
	newPictures  int             // number of new pictures requested in mixed days
	usedPrograms map[string]bool // versions or names of the baselines that took part
}

func newEnv(options Options) (*env, error) {
	all, err := baseline.Processors()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "veneer-bench-")
	if err != nil {
		return nil, err
	}
	s := &env{
		Options: options, serverEnv: baseline.Env{CPUs: all[len(all)-1:], WorkDir: work}, loadCPU: all[0],
		servers: map[string]*baseline.Server{}, tags: map[*baseline.Server][]string{}, usedPrograms: map[string]bool{}, missing: map[string]*baseline.MissingError{},
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(work) })
	s.addSetting("processor of the servers", all[len(all)-1])
	s.addSetting("processor of the load", all[0])
	return s, nil
}

func (e *env) close() {
	for _, closer := range slices.Backward(e.closers) {
		closer()
	}
}

// addSetting records a setting.
func (e *env) addSetting(name string, value any) {
	e.settings = append(e.settings, results.Setting{Name: name, Value: fmt.Sprint(value)})
}

// progress prints a slow step on a line of its own, and its duration when it is done.
func (e *env) progress(what string, args ...any) (done func()) {
	began := time.Now()
	fmt.Fprintf(e.Out, "\r    "+what+" … ", args...)
	return func() { fmt.Fprintf(e.Out, "%.0f s\n", time.Since(began).Seconds()) }
}

// startServer starts a server once, by its name, and returns it; nil if it is not installed.
func (e *env) startServer(name string, open func(dir baseline.Env) (*baseline.Server, error)) (*baseline.Server, error) {
	if server, ok := e.servers[name]; ok {
		return server, nil
	}
	if _, known := e.missing[name]; known {
		return nil, nil //nolint:nilnil // absent has why
	}
	dir, err := os.MkdirTemp(e.serverEnv.WorkDir, "")
	if err != nil {
		return nil, err
	}
	defer e.progress("starting %s", name)()
	server, err := open(baseline.Env{CPUs: e.serverEnv.CPUs, WorkDir: dir})
	missing, ok := errors.AsType[*baseline.MissingError](err)
	switch {
	case ok:
		e.missing[name] = missing
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	e.closers = append(e.closers, server.Stop)
	e.servers[name], e.usedPrograms[server.Version] = server, true
	return server, nil
}

// subject returns a subject with the server that startServer has returned for a name.
func (e *env) subject(name string, server *baseline.Server, measure func(server *baseline.Server) func(context.Context, int) (outcome, error)) subject {
	if server == nil {
		return subject{name: name, missing: e.missing[name].Error()}
	}
	return subject{name: name, version: server.Version, measure: measure(server)}
}

// The views that the fixture's edge has cached, and the size of caches in front of it, which is
// more than all answers need.
const (
	knownViews      = 100_000
	knownViewsQuick = 500
	cacheBytes      = 1 << 30

	// fixturePlayers is the number of players. Half of their skins are only used for new
	// pictures.
	fixturePlayers      = 20_000
	fixturePlayersQuick = 100
)

// openFixture opens the fixture. Afterwards its edge has the views cached, the texture files of
// their players, and one avatar by name.
func (e *env) openFixture(ctx context.Context) error {
	if e.fixture != nil {
		return nil
	}
	count, players := knownViews, fixturePlayers
	if e.Quick {
		count, players = knownViewsQuick, fixturePlayersQuick
	}
	var settings []string
	if e.Encoder != "" {
		settings = append(settings, "EDGE_ENCODER="+e.Encoder)
		e.addSetting("EDGE_ENCODER", e.Encoder)
	}
	if e.Quick { // maybe beside tests, to which the edge's render threads yield
		settings = append(settings, renderTimeoutSetting)
	}
	done := e.progress("building a fixture and rendering %d views of it", count)
	var err error
	if e.fixture, err = fixture.Open(ctx, e.serverEnv, e.Edge, players, settings...); err != nil {
		return err
	}
	e.closers = append(e.closers, e.fixture.Close)
	e.addSetting("different views in memory", count)
	e.addSetting("behind the edges, but for freshness", "a fake core that answers immediately, and files in a directory")
	var views []string
	views, e.usedPlayers = e.fixture.Views(count)
	e.record, err = baseline.RecordHits(ctx, e.fixture.Edge, slices.Concat(views, e.fixture.TextureFiles(e.usedPlayers), []string{e.fixture.AvatarByName()}))
	if err != nil {
		return err
	}
	done()
	if different := len(e.record.Bodies) - e.usedPlayers; different < count { // besides the files
		return fmt.Errorf("%d views are %d pictures", count, different)
	}
	return nil
}

// isView, isFile and isHead report the kind of an address of the record.
func isView(target string) bool { return !isFile(target) && !isHead(target) }
func isFile(target string) bool { return strings.HasPrefix(target, "/textures/") }
func isHead(target string) bool { return strings.HasPrefix(target, "/avatar/player/") }

// unusedSkins returns the hashes of the skins that are in none of the addresses.
func (e *env) unusedSkins() []skin.Hash {
	return e.fixture.Skins()[e.usedPlayers:]
}

// programs returns the versions of all baselines that took part, and the missing ones.
func (e *env) programs(ctx context.Context) (all []results.Program, err error) {
	wanted := map[string]bool{}
	for _, missing := range e.missing {
		wanted[missing.What] = true
	}
	for _, p := range baseline.Programs(e.Modules) {
		version, err := p.Version(ctx)
		if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
			version = missing.Error()
		} else if err != nil {
			return nil, err
		}
		if e.usedPrograms[version] || e.usedPrograms[p.Name] || wanted[p.Name] {
			all = append(all, results.Program{Name: p.Name, Version: version})
		}
	}
	return all, nil
}

// textures returns the directory of the fixture's textures.
func (e *env) textures() string { return fixture.Textures(e.serverEnv) }
