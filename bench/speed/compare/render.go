package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/shared/skin"
)

const (
	coldWarmUp      = 2
	coldRounds      = 11
	coldEach        = 2 * time.Second // or until the views of a round are used up
	coldConnections = 8               // concurrent requests
	stampedeWarmUp  = 10
	stampedeRounds  = 20
	stampedeClients = 500 // clients that request one new picture at the same time
	stampedeSize    = 256

	// The sizes of the views, from the smallest.
	coldLeast, coldStep, coldSizes = 64, 16, 12
	// viewStride visits every view in an order that mixes sizes: it is prime, so it is coprime
	// to any number of views that is not its multiple.
	viewStride = 123_457
)

// renderScenarios returns the scenarios of cache misses.
func renderScenarios() []scenario {
	return []scenario{
		{
			name: "cold", measures: "Every picture is new: flat heads of 64 to 240 pixels, as PNG. The skin's file is already known.", unit: "pictures/s", moreIsBetter: true, warmUp: coldWarmUp, rounds: coldRounds,
			open: func(s *env, ctx context.Context) ([]subject, error) {
				return s.renderSubjects(ctx, "flat", s.measureCold)
			},
		},
		{
			name: "cold, in space", measures: "Every picture is new: heads in space of 64 to 240 pixels, as PNG.", unit: "pictures/s", moreIsBetter: true, warmUp: coldWarmUp, rounds: coldRounds,
			open: func(s *env, ctx context.Context) ([]subject, error) {
				return s.renderSubjects(ctx, "isometric", s.measureCold)
			},
		},
		{
			name: "stampede", measures: "500 clients request one new flat head of 256 pixels at the same time, until the last of them has it.", unit: "ms", warmUp: stampedeWarmUp, rounds: stampedeRounds,
			open: func(s *env, ctx context.Context) ([]subject, error) {
				return s.renderSubjects(ctx, "flat", s.measureStampede)
			},
		},
	}
}

// renderServer is a server that renders.
type renderServer struct {
	*baseline.Server
	target   func(view baseline.View, hash skin.Hash) string
	mode     string
	rendered func(ctx context.Context) (float64, error) // number of renders; nil if it does not report it
}

// edgeTarget returns the edge's request target for a view as PNG.
func edgeTarget(view baseline.View, hash skin.Hash) string {
	space := ""
	if view.Mode == "isometric" {
		space = "&3d"
	}
	return fmt.Sprintf("/avatar/hash/%s?png&size=%d%s", hash, view.Size, space)
}

// renderSubjects opens the servers that render. Each gets the same views in the same rounds.
func (e *env) renderSubjects(ctx context.Context, mode string, measure func(*renderServer) func(context.Context, int) (outcome, error)) ([]subject, error) {
	if err := e.openFixture(ctx); err != nil {
		return nil, err
	}
	if err := e.warmMappings(ctx); err != nil {
		return nil, err
	}
	edge := &renderServer{Server: e.fixture.Edge, target: edgeTarget, mode: mode, rendered: func(ctx context.Context) (float64, error) { return rendersOf(ctx, e.fixture.Operators) }}
	subjects := []subject{{name: "Veneer", measure: measure(edge)}}
	for _, other := range []struct {
		name string
		open func(at baseline.Env) (*baseline.Server, error)
	}{
		{"sharp behind Node", func(at baseline.Env) (*baseline.Server, error) {
			return baseline.StartSharp(ctx, at, e.textures(), e.Modules)
		}},
		{"net/http and image/png", func(at baseline.Env) (*baseline.Server, error) {
			return baseline.StartImagePNG(ctx, at, e.textures())
		}},
	} {
		server, err := e.startServer(other.name, other.open)
		if err != nil {
			return nil, err
		}
		if server != nil {
			if cannot := server.Unsupported(baseline.View{Mode: mode, Size: coldLeast, Format: "png"}); cannot != "" {
				subjects = append(subjects, subject{name: other.name, version: server.Version, cannot: cannot})
				continue
			}
		}
		subjects = append(subjects, e.subject(other.name, server, func(server *baseline.Server) func(context.Context, int) (outcome, error) {
			return measure(&renderServer{Server: server, target: baseline.View.Target, mode: mode})
		}))
	}
	return subjects, nil
}

// warmMappings makes the edge resolve once the hashes that will be rendered: the other servers are
// given the file names.
func (e *env) warmMappings(ctx context.Context) error {
	if e.mappingsWarm {
		return nil
	}
	e.mappingsWarm = true
	defer e.progress("filling the edge's mapping cache")()
	stream := &load.Stream{Connections: coldConnections, Statuses: []int{fasthttp.StatusOK}}
	for _, hash := range e.unusedSkins() { // in a size that is not used elsewhere
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET /avatar/hash/%s?size=8 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", hash))
	}
	stream.Order = once(len(stream.Requests))
	_, err := e.send(ctx, e.fixture.Edge.Address, time.Minute, stream)
	return err
}

// once returns the order in which each of n requests is sent once.
func once(n int) func() int {
	next := 0
	return func() int {
		if next == n {
			return -1
		}
		next++
		return next - 1
	}
}

// measureCold returns the measurement of a server's rate of new pictures.
func (e *env) measureCold(a *renderServer) func(context.Context, int) (outcome, error) {
	each, skins := e.duration(coldEach), e.unusedSkins()
	views := len(skins) * coldSizes
	perRound := views / (coldWarmUp + coldRounds) // no picture is requested twice
	return func(ctx context.Context, round int) (out outcome, err error) {
		stream, targets := &load.Stream{Connections: coldConnections, Statuses: []int{fasthttp.StatusOK}}, make([]string, perRound)
		for i := range targets {
			n := (round*perRound + i) * viewStride % views
			targets[i] = a.target(baseline.View{Mode: a.mode, Size: coldLeast + coldStep*(n/len(skins)), Format: "png"}, skins[n%len(skins)])
			stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", targets[i]))
		}
		requested := 0
		next := once(perRound)
		stream.Order = func() int {
			i := next()
			requested = max(requested, i+1)
			return i
		}
		before, err := a.renderCount(ctx)
		if err != nil {
			return outcome{}, err
		}
		if err := decodeSample(stream, func(request int) string { return targets[request] }, func() (err error) {
			out, err = e.measureClosed(ctx, a.Server, a.Address, each, stream)
			return err
		}); err != nil {
			return outcome{}, err
		}
		after, err := a.renderCount(ctx)
		if rendered := int(after - before); err == nil && a.rendered != nil && rendered != requested {
			err = fmt.Errorf("%d pictures were requested, and %d rendered", requested, rendered)
		}
		return out, err
	}
}

func (s *renderServer) renderCount(ctx context.Context) (float64, error) {
	if s.rendered == nil {
		return 0, nil
	}
	return s.rendered(ctx)
}

// measureStampede returns the measurement of how long many clients wait for one new picture.
func (e *env) measureStampede(a *renderServer) func(context.Context, int) (outcome, error) {
	skins := e.unusedSkins()
	return func(ctx context.Context, round int) (outcome, error) {
		target := a.target(baseline.View{Mode: a.mode, Size: stampedeSize, Format: "png"}, skins[round])
		stream := &load.Stream{Connections: stampedeClients, Statuses: []int{fasthttp.StatusOK}, Requests: [][]byte{
			fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target),
		}}
		next := once(stampedeClients)
		stream.Order = func() int { return min(next(), 0) }
		var answers *load.Answers
		if err := decodeSample(stream, func(int) string { return target }, func() (err error) {
			answers, err = e.send(ctx, a.Address, 30*time.Second, stream)
			return err
		}); err != nil {
			return outcome{}, err
		}
		if answers.Total() != stampedeClients {
			return outcome{}, errors.New("not all have got an answer")
		}
		latencies := answers.All()
		return outcome{float64(latencies.Max()) / 1e6, []namedFigure{{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6}}}, nil
	}
}
