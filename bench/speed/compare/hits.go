package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/picturecheck"
)

const (
	// connections is the number of keep-alive connections for cached answers.
	connections = 32
	// popularity is the exponent of Zipf's law, about that of players' names.
	popularity = 0.9
	// answersRounds is the number of rounds, each of answersEach for every server.
	answersWarmUp = 5
	// viewsWarmUp is for many pictures: until then, Varnish becomes faster with each round.
	viewsWarmUp   = 60
	answersRounds = 20
	answersEach   = 400 * time.Millisecond
)

// memoryScenarios returns the scenarios with known answers: of the edge and of servers that have
// the same ones.
func memoryScenarios() []scenario {
	of := func(name, measures string, warmUp int, sel selection) scenario {
		return scenario{
			name: name, measures: measures, unit: "answers/s", moreIsBetter: true, warmUp: warmUp, rounds: answersRounds,
			open: func(s *env, ctx context.Context) ([]subject, error) { return s.memorySubjects(ctx, sel) },
		}
	}
	return []scenario{
		of("hot", "One picture that is in memory, requested over 32 connections.", answersWarmUp, selection{
			pick: isHead,
		}),
		of("warm", "100,000 different pictures in Zipf order, all in memory. Caches in front may store each for a day or longer.", viewsWarmUp, selection{pick: isView, zipf: true}),
		of("revalidation", "The same pictures for clients that have them: 304.", answersWarmUp, selection{pick: isView, zipf: true, conditional: true}),
		of("raw textures", "Texture files as they are stored, all in memory.", answersWarmUp, selection{
			pick: isFile,
		}),
	}
}

// selection selects the requests of a scenario.
type selection struct {
	pick        func(target string) bool // selects the record's addresses
	zipf        bool                     // else uniform
	conditional bool
}

// memorySubjects opens the servers that answer from memory.
func (e *env) memorySubjects(ctx context.Context, sel selection) ([]subject, error) {
	if err := e.openFixture(ctx); err != nil {
		return nil, err
	}
	open, err := baseline.RaiseFileLimit()
	if err != nil {
		return nil, err
	}
	edge := e.fixture.Edge
	e.tags[edge] = e.record.Tags()
	subjects := []subject{{name: "Veneer", measure: e.measureMemory(edge, sel)}}
	for _, other := range []struct {
		name string
		open func(at baseline.Env) (*baseline.Server, error)
	}{
		{"bare fasthttp", func(at baseline.Env) (*baseline.Server, error) {
			return e.checkServer(ctx)(baseline.StartFasthttp(ctx, at, e.record, baseline.Certificate{}))
		}},
		{"nginx, files", func(at baseline.Env) (*baseline.Server, error) {
			if err := baseline.WriteFiles(at.WorkDir, e.record); err != nil {
				return nil, err
			}
			e.addSetting("files that nginx may have open", open)
			return e.checkServer(ctx)(baseline.StartNginx(ctx, at, at.WorkDir, baseline.ByAddress, open, e.record))
		}},
		{"nginx's cache before Veneer", func(at baseline.Env) (*baseline.Server, error) {
			e.addSetting("maximum bytes of nginx's cache", cacheBytes)
			return e.checkServer(ctx)(baseline.StartNginxCache(ctx, at, edge.Address, cacheBytes))
		}},
		{"Varnish before Veneer", func(at baseline.Env) (*baseline.Server, error) {
			e.addSetting("maximum bytes of Varnish", cacheBytes)
			return e.checkServer(ctx)(baseline.StartVarnish(ctx, at, edge.Address, cacheBytes))
		}},
	} {
		server, err := e.startServer(other.name, other.open)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, e.subject(other.name, server, func(server *baseline.Server) func(context.Context, int) (outcome, error) {
			return e.measureMemory(server, sel)
		}))
	}
	return subjects, nil
}

// checkServer returns a server once it has answered everything as the edge does. A cache is filled
// then.
func (e *env) checkServer(ctx context.Context) func(server *baseline.Server, err error) (*baseline.Server, error) {
	return func(server *baseline.Server, err error) (*baseline.Server, error) {
		if err != nil {
			return nil, err
		}
		tags, err := server.Check(ctx, e.record)
		if err != nil {
			server.Stop()
			return nil, err
		}
		e.tags[server] = tags
		return server, nil
	}
}

// measureMemory returns the measurement of a server that has the answers.
func (e *env) measureMemory(server *baseline.Server, sel selection) func(context.Context, int) (outcome, error) {
	address, all := server.Address, e.record.Full
	if sel.conditional {
		address, all = server.Conditional, e.record.Unmodified
	}
	stream := &load.Stream{Connections: connections, Statuses: []int{all[0].Status}}
	tags := e.tags[server]
	var bodies [][]byte
	for i := range all {
		a := &all[i]
		if !sel.pick(a.Target) {
			continue
		}
		condition := ""
		if sel.conditional {
			condition = "If-None-Match: " + tags[i] + "\r\n"
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", server.Target(a), condition))
		stream.Lengths = append(stream.Lengths, len(e.record.Body(a)))
		bodies = append(bodies, e.record.Body(a))
	}
	stream.InspectShare, stream.Inspect = e.compareShare(), sameBodies(bodies)
	each, order := e.duration(answersEach), requestOrders(len(stream.Requests), sel.zipf)
	return func(ctx context.Context, round int) (outcome, error) {
		stream.Order = order(round)
		return e.measureClosed(ctx, server, address, each, stream)
	}
}

// sameBodies returns an Inspect function that compares bodies with those of their requests.
func sameBodies(bodies [][]byte) func(request, status int, body []byte) error {
	return func(request, _ int, body []byte) error {
		if !bytes.Equal(body, bodies[request]) {
			return fmt.Errorf("answer %d is another one", request)
		}
		return nil
	}
}

// requestOrders returns the order of n requests in a round, the same for all servers. In Zipf order
// the most popular ones are any of them.
func requestOrders(n int, zipf bool) func(round int) func() int {
	if !zipf {
		return func(round int) func() int { return load.Random(n, uint64(round)) }
	}
	return newPopular(n).order
}

// zipfOrder draws numbers by Zipf's law.
type zipfOrder struct {
	ranks       load.Zipf
	permutation []int // the number at each rank
}

func newPopular(n int) zipfOrder {
	return zipfOrder{load.NewZipf(n, popularity), rand.New(rand.NewPCG(1, uint64(n))).Perm(n)}
}

// draw returns a number.
func (o zipfOrder) draw(random *rand.Rand) int { return o.permutation[o.ranks.Draw(random)] }

// order returns the numbers of a round.
func (o zipfOrder) order(round int) func() int {
	random := rand.New(rand.NewPCG(2, uint64(round)))
	// Drawn ahead: a search among a hundred thousand costs as much as an answer.
	const ahead = 1 << 17
	list := make([]int32, ahead)
	for i := range list {
		list[i] = int32(o.draw(random))
	}
	next := 0
	return func() int {
		i := list[next%ahead]
		next++
		return int(i)
	}
}

// measureClosed sends a closed loop to a server, and returns the rate, the latencies, and the
// server's CPU time for an answer.
func (e *env) measureClosed(ctx context.Context, server *baseline.Server, address string, each time.Duration, stream *load.Stream) (outcome, error) {
	before, err := server.ProcessorTime()
	if err != nil {
		return outcome{}, err
	}
	answers, err := e.send(ctx, address, each, stream)
	if err != nil {
		return outcome{}, err
	}
	after, err := server.ProcessorTime()
	if err != nil {
		return outcome{}, err
	}
	latencies, total := answers.All(), float64(answers.Total())
	return outcome{total / answers.Elapsed.Seconds(), []namedFigure{
		{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6},
		{"p99", "ms", float64(latencies.ValueAtPercentile(99)) / 1e6},
		{"with headers", "bytes/answer", float64(answers.Bytes) / total},
		{"processor time", "µs/answer", float64(after-before) / 1e3 / total},
		loadBusy(answers),
	}}, nil
}

// loadBusy returns the CPU use of the load generator: near 100 % it was the bottleneck.
func loadBusy(answers *load.Answers) namedFigure {
	return namedFigure{"the load busy", "%", 100 * answers.Busy.Seconds() / answers.Elapsed.Seconds()}
}

// inspectShare is the share of answers with inspected bodies: known ones are compared, new pictures
// decoded.
const inspectShare = 0.01

// compareShare returns the share of known answers that are compared: all of them in a quick run,
// which measures nothing.
func (e *env) compareShare() float64 {
	if e.Quick {
		return 1
	}
	return inspectShare
}

// decodeSample samples the pictures of a stream during send, and then decodes them. The path of a
// request has size= if the height is to be checked, and is empty if it is for no picture.
func decodeSample(stream *load.Stream, path func(request int) string, send func() error) error {
	sampler := picturecheck.New(path, 1)
	stream.InspectShare, stream.Inspect = inspectShare, func(request, status int, body []byte) error {
		if path(request) == "" {
			return nil
		}
		return sampler.Inspect(request, status, body)
	}
	err := send()
	picturecheck.Decode([]*picturecheck.Sampler{sampler}, func(_ load.Fault, _ int64, wrong error) { err = errors.Join(err, wrong) })
	return err
}

// send sends a stream from the load's processor. All answers must be right.
func (e *env) send(ctx context.Context, address string, duration time.Duration, stream *load.Stream) (*load.Answers, error) {
	unpin, err := load.Pin(e.loadCPU)
	if err != nil {
		return nil, err
	}
	defer unpin()
	got, err := load.Run(ctx, address, duration, stream)
	if err == nil {
		err = got[0].Check()
	}
	if err != nil {
		return nil, err
	}
	return &got[0], nil
}
