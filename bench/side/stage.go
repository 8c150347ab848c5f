package side

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/report"
	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/bench/town"
	"github.com/veneer-skins/veneer/shared/skin"
)

// stage is the servers, each started once for all scenarios that ask it. They share one
// processor, as only one of them works at a time, and the load has another.
type stage struct {
	Options

	place    rivals.Place // of the servers
	loadCPU  int
	closers  []func()
	settings []report.Setting

	site    *site
	town    *town.Town
	seen    int // of the town's residents: how many have views among the addresses
	crowd   *crowd
	record  *rivals.Record
	servers map[string]*rivals.Server
	tags    map[*rivals.Server][]string // of the addresses, as the server names them
	absent  map[string]*rivals.MissingError

	acquainted bool            // the edge knows who is to be drawn
	coldSeen   int             // how many new pictures were asked for in mixed days
	took       map[string]bool // versions or names of the rivals that took part
}

func openStage(options Options) (*stage, error) {
	all, err := rivals.Processors()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "veneer-bench-")
	if err != nil {
		return nil, err
	}
	s := &stage{
		Options: options, place: rivals.Place{CPUs: all[len(all)-1:], Work: work}, loadCPU: all[0],
		servers: map[string]*rivals.Server{}, tags: map[*rivals.Server][]string{}, took: map[string]bool{}, absent: map[string]*rivals.MissingError{},
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(work) })
	s.tell("processor of the servers", all[len(all)-1])
	s.tell("processor of the load", all[0])
	return s, nil
}

func (s *stage) close() {
	for _, closer := range slices.Backward(s.closers) {
		closer()
	}
}

// tell notes a setting.
func (s *stage) tell(name string, value any) {
	s.settings = append(s.settings, report.Setting{Name: name, Value: fmt.Sprint(value)})
}

// doing says on a line of its own what takes a while, until it is done.
func (s *stage) doing(what string, args ...any) (done func()) {
	began := time.Now()
	fmt.Fprintf(s.Out, "\r    "+what+" … ", args...)
	return func() { fmt.Fprintf(s.Out, "%.0f s\n", time.Since(began).Seconds()) }
}

// start starts a server once, by its name, and returns it; nil if it is not installed.
func (s *stage) start(name string, open func(place rivals.Place) (*rivals.Server, error)) (*rivals.Server, error) {
	if server, ok := s.servers[name]; ok {
		return server, nil
	}
	if _, known := s.absent[name]; known {
		return nil, nil //nolint:nilnil // absent has why
	}
	place, err := os.MkdirTemp(s.place.Work, "")
	if err != nil {
		return nil, err
	}
	defer s.doing("starting %s", name)()
	server, err := open(rivals.Place{CPUs: s.place.CPUs, Work: place})
	missing, ok := errors.AsType[*rivals.MissingError](err)
	switch {
	case ok:
		s.absent[name] = missing
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.closers = append(s.closers, server.Stop)
	s.servers[name], s.took[server.Version] = server, true
	return server, nil
}

// subject returns who does its work with a server, which start has returned for a name.
func (s *stage) subject(name string, server *rivals.Server, measure func(server *rivals.Server) func(context.Context, int) (outcome, error)) subject {
	if server == nil {
		return subject{name: name, missing: s.absent[name].Error()}
	}
	return subject{name: name, version: server.Version, measure: measure(server)}
}

// The views that a town's edge has in memory, and the bytes that caches in front of it may
// take, which is more than all answers have.
const (
	knownViews      = 100_000
	knownViewsQuick = 500
	cacheBytes      = 1 << 30

	// residents is how many there are, half of whom nobody asks for but who wants new
	// pictures.
	residents      = 20_000
	residentsQuick = 100
)

// settle opens the town. The edge has its views in memory then, the skins' files of those
// who are seen on them, and one of them by the name.
func (s *stage) settle(ctx context.Context) error {
	if s.town != nil {
		return nil
	}
	count, people := knownViews, residents
	if s.Quick {
		count, people = knownViewsQuick, residentsQuick
	}
	var settings []string
	if s.Encoder != "" {
		settings = append(settings, "EDGE_ENCODER="+s.Encoder)
		s.tell("EDGE_ENCODER", s.Encoder)
	}
	if s.Quick { // beside tests, perhaps, for which it stands back
		settings = append(settings, crowdPatience)
	}
	done := s.doing("building a town and drawing %d views of it", count)
	var err error
	if s.town, err = town.Open(ctx, s.place, s.Edge, people, settings...); err != nil {
		return err
	}
	s.closers = append(s.closers, s.town.Close)
	s.tell("different views in memory", count)
	s.tell("behind the edges, but for freshness", "a stand-in for core that answers at once, and files in a directory")
	var views []string
	views, s.seen = s.town.Views(count)
	s.record, err = rivals.RecordHits(ctx, s.town.Edge, slices.Concat(views, s.town.Files(s.seen), []string{s.town.Head()}))
	if err != nil {
		return err
	}
	done()
	if different := len(s.record.Bodies) - s.seen; different < count { // besides the files
		return fmt.Errorf("%d views are %d pictures", count, different)
	}
	return nil
}

// isView, isFile and isHead tell what an address of the record is of.
func isView(target string) bool { return !isFile(target) && !isHead(target) }
func isFile(target string) bool { return strings.HasPrefix(target, "/textures/") }
func isHead(target string) bool { return strings.HasPrefix(target, "/avatar/player/") }

// strangers returns the hashes of the skins of residents with whom none of the addresses
// has to do.
func (s *stage) strangers() []skin.Hash {
	return s.town.Skins()[s.seen:]
}

// programs returns the versions of all rivals that took part, and which ones are missing.
func (s *stage) programs(ctx context.Context) (all []report.Program, err error) {
	wanted := map[string]bool{}
	for _, missing := range s.absent {
		wanted[missing.What] = true
	}
	for _, p := range rivals.Programs(s.Modules) {
		version, err := p.Version(ctx)
		if missing, ok := errors.AsType[*rivals.MissingError](err); ok {
			version = missing.Error()
		} else if err != nil {
			return nil, err
		}
		if s.took[version] || s.took[p.Name] || wanted[p.Name] {
			all = append(all, report.Program{Name: p.Name, Version: version})
		}
	}
	return all, nil
}

// textures returns the directory of the town's textures.
func (s *stage) textures() string { return town.Textures(s.place) }
