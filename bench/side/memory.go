package side

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/bench/sample"
)

const (
	// connections is how many keep-alive connections ask for what is in memory.
	connections = 32
	// popularity is the exponent of Zipf's law, about that of players' names.
	popularity = 0.9
	// answersRounds is how many rounds there are, each of answersEach for every server.
	answersWarmUp = 5
	// viewsWarmUp is for many pictures: until then, Varnish becomes faster with each round.
	viewsWarmUp   = 60
	answersRounds = 20
	answersEach   = 400 * time.Millisecond
)

// fromMemory returns the scenarios in which the answers are known: of the edge and of
// servers that hold the same ones.
func fromMemory() []scenario {
	of := func(name, measures string, warmUp int, asked asked) scenario {
		return scenario{
			name: name, measures: measures, unit: "answers/s", moreIsBetter: true, warmUp: warmUp, rounds: answersRounds,
			open: func(s *stage, ctx context.Context) ([]subject, error) { return s.answer(ctx, asked) },
		}
	}
	return []scenario{
		of("hot", "One picture that is in memory, asked for over 32 connections.", answersWarmUp, asked{
			pick: isHead,
		}),
		of("warm", "100,000 different pictures in Zipf order, all in memory. Caches in front may keep each for a day or longer.", viewsWarmUp, asked{pick: isView, zipf: true}),
		of("revalidation", "The same pictures for clients that have them: 304.", answersWarmUp, asked{pick: isView, zipf: true, conditional: true}),
		of("raw textures", "Texture files as they are stored, all in memory.", answersWarmUp, asked{
			pick: isFile,
		}),
	}
}

// asked is what servers are asked for.
type asked struct {
	pick        func(target string) bool // of the record's addresses
	zipf        bool                     // or all the same
	conditional bool
}

// answer opens the servers that answer from memory.
func (s *stage) answer(ctx context.Context, what asked) ([]subject, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	open, err := rivals.MayOpen()
	if err != nil {
		return nil, err
	}
	edge := s.town.Edge
	s.tags[edge] = s.record.Tags()
	subjects := []subject{{name: "Veneer", measure: s.answers(edge, what)}}
	for _, rival := range []struct {
		name string
		open func(place rivals.Place) (*rivals.Server, error)
	}{
		{"bare fasthttp", func(place rivals.Place) (*rivals.Server, error) {
			return s.checked(ctx)(rivals.StartBare(ctx, place, s.record, rivals.Certificate{}))
		}},
		{"nginx, files", func(place rivals.Place) (*rivals.Server, error) {
			if err := rivals.WriteFiles(place.Work, s.record); err != nil {
				return nil, err
			}
			s.tell("files that nginx may keep open", open)
			return s.checked(ctx)(rivals.StartNginx(ctx, place, place.Work, rivals.ByAddress, open, s.record))
		}},
		{"nginx's cache before Veneer", func(place rivals.Place) (*rivals.Server, error) {
			s.tell("bytes that nginx's cache may take", cacheBytes)
			return s.checked(ctx)(rivals.StartNginxCache(ctx, place, edge.Address, cacheBytes))
		}},
		{"Varnish before Veneer", func(place rivals.Place) (*rivals.Server, error) {
			s.tell("bytes that Varnish may take", cacheBytes)
			return s.checked(ctx)(rivals.StartVarnish(ctx, place, edge.Address, cacheBytes))
		}},
	} {
		server, err := s.start(rival.name, rival.open)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s.subject(rival.name, server, func(server *rivals.Server) func(context.Context, int) (outcome, error) {
			return s.answers(server, what)
		}))
	}
	return subjects, nil
}

// checked returns a server once it has answered everything as the edge does. A cache has
// asked the edge for everything then.
func (s *stage) checked(ctx context.Context) func(server *rivals.Server, err error) (*rivals.Server, error) {
	return func(server *rivals.Server, err error) (*rivals.Server, error) {
		if err != nil {
			return nil, err
		}
		tags, err := server.Check(ctx, s.record)
		if err != nil {
			server.Stop()
			return nil, err
		}
		s.tags[server] = tags
		return server, nil
	}
}

// answers returns the measuring of a server that has the answers.
func (s *stage) answers(server *rivals.Server, what asked) func(context.Context, int) (outcome, error) {
	address, all := server.Address, s.record.Full
	if what.conditional {
		address, all = server.Conditional, s.record.Unmodified
	}
	stream := &load.Stream{Connections: connections, Statuses: []int{all[0].Status}}
	tags := s.tags[server]
	var bodies [][]byte
	for i := range all {
		a := &all[i]
		if !what.pick(a.Target) {
			continue
		}
		condition := ""
		if what.conditional {
			condition = "If-None-Match: " + tags[i] + "\r\n"
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", server.Target(a), condition))
		stream.Lengths = append(stream.Lengths, len(s.record.Body(a)))
		bodies = append(bodies, s.record.Body(a))
	}
	stream.Share, stream.Look = s.share(), same(bodies)
	each, order := s.each(answersEach), orders(len(stream.Requests), what.zipf)
	return func(ctx context.Context, round int) (outcome, error) {
		stream.Order = order(round)
		return s.closed(ctx, server, address, each, stream)
	}
}

// same returns a look at answers, whose bodies must be those of their requests.
func same(bodies [][]byte) func(request, status int, body []byte) error {
	return func(request, _ int, body []byte) error {
		if !bytes.Equal(body, bodies[request]) {
			return fmt.Errorf("answer %d is another one", request)
		}
		return nil
	}
}

// orders returns how n requests are drawn in a round, the same for all servers. In Zipf
// order the most popular ones are any of them.
func orders(n int, zipf bool) func(round int) func() int {
	if !zipf {
		return func(round int) func() int { return load.Random(n, uint64(round)) }
	}
	return newPopular(n).order
}

// popular is things in their order by Zipf's law.
type popular struct {
	ranks  load.Zipf
	places []int // which thing is how popular
}

func newPopular(n int) popular {
	return popular{load.NewZipf(n, popularity), rand.New(rand.NewPCG(1, uint64(n))).Perm(n)}
}

// draw returns one thing.
func (p popular) draw(random *rand.Rand) int { return p.places[p.ranks.Draw(random)] }

// order returns how things are drawn in a round.
func (p popular) order(round int) func() int {
	random := rand.New(rand.NewPCG(2, uint64(round)))
	// Drawn ahead: a search among a hundred thousand costs as much as an answer.
	const ahead = 1 << 17
	list := make([]int32, ahead)
	for i := range list {
		list[i] = int32(p.draw(random))
	}
	next := 0
	return func() int {
		i := list[next%ahead]
		next++
		return int(i)
	}
}

// closed asks a server as fast as it answers, and tells the rate, the latencies, and the
// server's processor time for each answer.
func (s *stage) closed(ctx context.Context, server *rivals.Server, address string, each time.Duration, stream *load.Stream) (outcome, error) {
	before, err := server.ProcessorTime()
	if err != nil {
		return outcome{}, err
	}
	answers, err := s.send(ctx, address, each, stream)
	if err != nil {
		return outcome{}, err
	}
	after, err := server.ProcessorTime()
	if err != nil {
		return outcome{}, err
	}
	latencies, total := answers.All(), float64(answers.Total())
	return outcome{total / answers.Elapsed.Seconds(), []figureOf{
		{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6},
		{"p99", "ms", float64(latencies.ValueAtPercentile(99)) / 1e6},
		{"with headers", "bytes/answer", float64(answers.Bytes) / total},
		{"processor time", "µs/answer", float64(after-before) / 1e3 / total},
		busyOf(answers),
	}}, nil
}

// busyOf tells how much of its processor's time the load took: near all of it, it was what
// bounded the rate.
func busyOf(answers *load.Answers) figureOf {
	return figureOf{"the load busy", "%", 100 * answers.Busy.Seconds() / answers.Elapsed.Seconds()}
}

// sampled is the share of answers that are looked at more closely than by their status
// and length: those that are known are compared, new pictures decoded.
const sampled = 0.01

// share returns the share of known answers that are looked at: all of them, if there is
// nothing to be measured.
func (s *stage) share() float64 {
	if s.Quick {
		return 1
	}
	return sampled
}

// decoded sends a stream by a function, and then decodes some of its pictures. The path
// of a request has size= if its picture is to be so high, and is empty if it asks for no
// picture.
func decoded(stream *load.Stream, path func(request int) string, send func() error) error {
	kept := sample.New(path, 1)
	stream.Share, stream.Look = sampled, func(request, status int, body []byte) error {
		if path(request) == "" {
			return nil
		}
		return kept.Look(request, status, body)
	}
	err := send()
	sample.Decode([]*sample.Samples{kept}, func(_ load.Fault, _ int64, wrong error) { err = errors.Join(err, wrong) })
	return err
}

// send sends a stream from the load's processor. All answers must be right.
func (s *stage) send(ctx context.Context, address string, duration time.Duration, stream *load.Stream) (*load.Answers, error) {
	unpin, err := load.Pin(s.loadCPU)
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
