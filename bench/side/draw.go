package side

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/rivals"
)

const (
	coldRounds      = 11
	coldEach        = 2 * time.Second
	coldConnections = 8 // as many pictures are asked for at a time
	stampedeRounds  = 11
	stampedeCrowd   = 500 // that ask for one new picture at the same time

	// The edge draws in steps of so many pixels, and what lies between is the same picture.
	coldStep, coldSteps = 16, 12
)

// drawn returns the scenarios in which pictures are new.
func drawn() []scenario {
	return []scenario{
		{
			name: "cold", measures: "Every picture is new: flat heads of 64 to 240 pixels, as PNG.", unit: "pictures/s", moreIsBetter: true, rounds: coldRounds,
			open: func(s *stage, ctx context.Context) ([]subject, error) { return s.artists(ctx, "flat", s.cold) },
		},
		{
			name: "cold, in space", measures: "Every picture is new: heads in space of 64 to 240 pixels, as PNG.", unit: "pictures/s", moreIsBetter: true, rounds: coldRounds,
			open: func(s *stage, ctx context.Context) ([]subject, error) { return s.artists(ctx, "isometric", s.cold) },
		},
		{
			name: "stampede", measures: "500 clients ask at once for one new flat head, until the last of them has it.", unit: "ms", rounds: stampedeRounds,
			open: func(s *stage, ctx context.Context) ([]subject, error) { return s.artists(ctx, "flat", s.stampede) },
		},
	}
}

// artist asks a server for new views.
type artist struct {
	*rivals.Server
	target func(view int) string
	views  int       // that there are
	seen   int       // how many of them have been asked for
	note   func(int) // hears of that, unless nil
}

// next returns a request for the next view, which nobody has asked for; nil if there is
// none left.
func (a *artist) next() []byte {
	if a.seen == a.views {
		return nil
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", a.target(a.seen))
	a.seen++
	if a.note != nil {
		a.note(a.seen)
	}
	return request
}

// artists opens the servers that draw. Each is asked for the same views in the same
// rounds.
func (s *stage) artists(ctx context.Context, pose string, measure func(*artist) func(context.Context, int) (outcome, error)) ([]subject, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	skins := s.town.Skins()
	view := func(n int) rivals.View {
		return rivals.View{Pose: pose, Size: 64 + coldStep*(n/len(skins)), Format: "png"}
	}
	views := coldSteps * len(skins)
	// Where the last scenario ended, the next goes on: no picture is drawn twice.
	edge := &artist{Server: s.town.Edge, views: views, seen: s.seen[pose], note: func(n int) { s.seen[pose] = n }, target: func(n int) string {
		space := ""
		if pose == "isometric" {
			space = "&3d"
		}
		return fmt.Sprintf("/avatar/hash/%s?png&size=%d%s", skins[n%len(skins)], view(n).Size, space)
	}}
	subjects := []subject{{name: "Veneer", measure: measure(edge)}}
	for _, rival := range []struct {
		name string
		open func(place rivals.Place) (*rivals.Server, error)
	}{
		{"sharp behind Node", func(place rivals.Place) (*rivals.Server, error) {
			return rivals.StartSharp(ctx, place, s.textures(), s.Modules)
		}},
		{"net/http and image/png", func(place rivals.Place) (*rivals.Server, error) {
			return rivals.StartImagePNG(ctx, place, s.textures())
		}},
	} {
		server, err := s.start(rival.name, rival.open)
		if err != nil {
			return nil, err
		}
		if server != nil {
			if cannot := server.Cannot(view(0)); cannot != "" {
				subjects = append(subjects, subject{name: rival.name, version: server.Version, cannot: cannot})
				continue
			}
		}
		subjects = append(subjects, s.subject(rival.name, server, func(server *rivals.Server) func(context.Context, int) (outcome, error) {
			return measure(&artist{Server: server, views: views, target: func(n int) string { return view(n).Target(skins[n%len(skins)]) }})
		}))
	}
	return subjects, nil
}

// cold returns the measuring of how many new pictures a server makes a second.
func (s *stage) cold(a *artist) func(context.Context, int) (outcome, error) {
	each := s.each(coldEach)
	return func(ctx context.Context, _ int) (outcome, error) {
		// Each is sent before the next one is made.
		stream := &load.Stream{Connections: coldConnections, Statuses: []int{200}, Requests: [][]byte{nil}}
		stream.Order = func() int {
			if stream.Requests[0] = a.next(); stream.Requests[0] == nil {
				return -1
			}
			return 0
		}
		return s.closed(ctx, a.Server, a.Address, each, stream)
	}
}

// stampede returns the measuring of how long a crowd waits for one new picture.
func (s *stage) stampede(a *artist) func(context.Context, int) (outcome, error) {
	return func(ctx context.Context, _ int) (outcome, error) {
		unpin, err := load.Pin(s.loadCPU)
		if err != nil {
			return outcome{}, err
		}
		defer unpin()
		stream := &load.Stream{Connections: stampedeCrowd, Statuses: []int{200}, Requests: [][]byte{a.next()}}
		if stream.Requests[0] == nil {
			return outcome{}, errors.New("there is no new picture left")
		}
		asked := 0
		stream.Order = func() int {
			if asked == stampedeCrowd {
				return -1
			}
			asked++
			return 0
		}
		got, err := load.Run(ctx, a.Address, 30*time.Second, stream)
		if err == nil {
			err = got[0].Check()
		}
		if err == nil && got[0].Total() != stampedeCrowd {
			err = errors.New("not all have got an answer")
		}
		if err != nil {
			return outcome{}, err
		}
		latencies := got[0].All()
		return outcome{float64(latencies.Max()) / 1e6, []figureOf{{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6}}}, nil
	}
}
