package compare

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/picturecheck"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// target is what requests are sent to: a server, alone or in front of edges, or the reason why there
// is none.
type target struct {
	name, version string
	missing       error
	cannot        string

	server    *baseline.Server // nil for a program of stack
	address   string
	clocks    []clock
	operators []string // of the edges that render for it
	anyCPU    bool     // the load may use all processors
	tags      []string // of the addresses that it was checked with
}

// clock is the CPU time of some programs of a target, and the name of the figure.
type clock struct {
	figure string
	read   func(tb testing.TB) time.Duration
}

func (t *target) use(server *baseline.Server) {
	t.server, t.address = server, server.Address
	t.clocks = append(t.clocks, clock{cpuFigure, server.ProcessorTime}, clock{"user time", server.UserTime})
}

func edgeTarget(name string, edge *baseline.Server) *target {
	t := &target{name: name, operators: []string{edge.Operators}}
	t.use(edge)
	return t
}

// subject returns the target as a subject. Only a target that takes part is measured.
func (t *target) subject(measure func(t *target) func(round int) outcome) subject {
	s := subject{name: t.name, version: t.version, cannot: t.cannot}
	switch {
	case t.missing != nil:
		s.missing = t.missing.Error()
	case t.cannot == "":
		s.measure = measure(t)
	}
	return s
}

func subjects(targets []*target, measure func(t *target) func(round int) outcome) []subject {
	all := make([]subject, len(targets))
	for i, t := range targets {
		all[i] = t.subject(measure)
	}
	return all
}

// Names of figures that other code looks up.
const (
	rateFigure     = "answers"
	ratioFigure    = "hit ratio"
	cpuFigure      = "processor time"
	edgeCPUFigure  = "processor time of edges"
	proxyCPUFigure = "processor time before them"
	bytesFigure    = "an answer, headers included"
)

// sample is a stream's answers, and what a target has used and drawn for them.
type sample struct {
	*load.Answers
	cpu     []time.Duration // by clock
	renders float64
}

func (s sample) total() float64 { return float64(s.Total()) }

// outcome returns the rate of the answers, and the figures of a target.
func (s sample) outcome(t *target) outcome {
	out := outcome{s.total() / s.Elapsed.Seconds(), []namedFigure{s.percentile(50), s.percentile(99)}}
	for i, c := range t.clocks {
		out.others = append(out.others, namedFigure{c.figure, "µs/answer", float64(s.cpu[i].Nanoseconds()) / 1e3 / s.total()})
	}
	out.others = append(out.others, namedFigure{bytesFigure, "bytes", float64(s.Bytes) / s.total()}, loadBusy(s.Answers))
	return out
}

func (s sample) percentile(percent float64) namedFigure {
	return namedFigure{"p" + strconv.FormatFloat(percent, 'f', -1, 64), "ms", latency(s.Answers, percent)}
}

// latency returns a percentile of all latencies in milliseconds.
func latency(answers *load.Answers, percent float64) float64 {
	return float64(answers.All().ValueAtPercentile(percent)) / 1e6
}

// loadBusy returns the CPU use of the load generator: near 100 % it was the bottleneck.
func loadBusy(answers *load.Answers) namedFigure {
	return namedFigure{"the load busy", "%", 100 * answers.Busy.Seconds() / answers.Elapsed.Seconds()}
}

// measure sends a stream to a target. All answers must be right. What it uses counts once all
// connections are open, as CDNs keep theirs.
func (e *env) measure(t *target, duration time.Duration, stream *load.Stream) sample {
	var before sample
	stream.Connected = func() { before = e.usage(t) }
	s := sample{Answers: e.send(t, duration, stream)[0]}
	stream.Connected = nil
	after := e.usage(t)
	s.renders = after.renders - before.renders
	for i := range after.cpu {
		s.cpu = append(s.cpu, after.cpu[i]-before.cpu[i])
	}
	return s
}

func (e *env) usage(t *target) (used sample) {
	for _, c := range t.clocks {
		used.cpu = append(used.cpu, c.read(e))
	}
	for _, operators := range t.operators {
		used.renders += e.rendersOf(operators)
	}
	return used
}

// send sends streams from the load's processor. All answers must be right.
func (e *env) send(t *target, duration time.Duration, streams ...*load.Stream) (all []*load.Answers) {
	if !t.anyCPU {
		defer testenv.Must(load.Pin(e.loadCPU))(e)()
	}
	answers := testenv.Must(load.Run(e.Context(), t.address, duration, streams...))(e)
	for i := range answers {
		if err := answers[i].Check(); err != nil {
			e.Fatalf("%s: %v", t.name, err)
		}
		all = append(all, &answers[i])
	}
	return all
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
func (e *env) decodeSample(stream *load.Stream, path func(request int) string, send func()) {
	sampler := picturecheck.New(path)
	stream.InspectShare, stream.Inspect = inspectShare, func(request, status int, body []byte) error {
		if path(request) == "" {
			return nil
		}
		return sampler.Inspect(request, status, body)
	}
	send()
	var err error
	sampler.Decode(func(_ load.Fault, _ int64, wrong error) { err = errors.Join(err, wrong) })
	testenv.Do(e, err)
}

// beginWith returns an Inspect function for bodies that begin as their requests want.
func beginWith(wants []string) func(request, status int, body []byte) error {
	return func(request, _ int, body []byte) error {
		if want := wants[request]; !strings.HasPrefix(string(body), want) {
			return fmt.Errorf("the answer begins with %.100q; want %q", body, want)
		}
		return nil
	}
}

func gets(paths []string) [][]byte {
	all := make([][]byte, len(paths))
	for i, path := range paths {
		all[i] = load.Get(path)
	}
	return all
}

func ifNoneMatch(tag string) string { return "If-None-Match: " + tag + "\r\n" }

const urlEncoded = "application/x-www-form-urlencoded"

// post returns a request with a body, and a user's token unless that is empty.
func post(method, path, contentType, bearer string, body []byte) []byte {
	authorization := ""
	if bearer != "" {
		authorization = "Authorization: Bearer " + bearer + "\r\n"
	}
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, authorization, contentType, len(body), body)
}

// streamOf returns a closed loop of requests that are answered with a status.
func streamOf(connections, status int, requests ...[]byte) *load.Stream {
	return &load.Stream{Connections: connections, Statuses: []int{status}, Requests: requests}
}

// requestOrders returns the order of n requests in a round, the same for all servers. In Zipf order
// the most popular ones are any of them.
func requestOrders(n int, zipf bool) func(round int) func() int {
	if !zipf {
		return func(round int) func() int { return load.Random(n, uint64(round)) }
	}
	return newPopular(n).order
}

// popularity is the exponent of Zipf's law, about as for players' names.
const popularity = 0.9

// zipfOrder draws numbers by Zipf's law.
type zipfOrder struct {
	ranks       load.Zipf
	permutation []int // the number at each rank
}

func newPopular(n int) zipfOrder {
	return zipfOrder{load.NewZipf(n, popularity), rand.New(rand.NewPCG(1, uint64(n))).Perm(n)}
}

// first returns the order of the n most popular numbers alone.
func (o zipfOrder) first(n int) zipfOrder {
	return zipfOrder{load.NewZipf(n, popularity), o.permutation[:n]}
}

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

const residentMetric = "process_resident_memory_bytes"

// metricsOf returns a program's metrics, by their names with all labels.
func (e *env) metricsOf(operators string) map[string]float64 {
	_, body, err := fasthttp.Get(nil, "http://"+operators+"/metrics")
	testenv.Do(e, err)
	metrics := map[string]float64{}
	for line := range strings.SplitSeq(string(body), "\n") {
		space := strings.LastIndexByte(line, ' ')
		if space < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			metrics[line[:space]] = value
		}
	}
	return metrics
}

// rendersOf returns the number of requests for which an edge has rendered a picture since its
// start.
func (e *env) rendersOf(operators string) (renders float64) {
	for name, value := range e.metricsOf(operators) {
		if strings.HasPrefix(name, "veneer_requests_total{") && strings.Contains(name, `outcome="miss"`) {
			renders += value
		}
	}
	return renders
}

// call sends a request with a form and a user's token, unless that is empty. It must succeed. It returns
// the entity tag of the response.
func call(method, url, bearer string, form []byte) (tag string, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(url)
	request.Header.SetMethod(method)
	request.Header.SetContentType(urlEncoded)
	if bearer != "" {
		request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+bearer)
	}
	request.SetBody(form)
	if err := fasthttp.Do(request, response); err != nil {
		return "", err
	}
	if status := response.StatusCode(); status != fasthttp.StatusOK {
		return "", fmt.Errorf("%s %s: %d %s", method, url, status, response.Body())
	}
	return string(response.Header.Peek(fasthttp.HeaderETag)), nil
}

func fetchTag(url string) (string, error) { return call(fasthttp.MethodGet, url, "", nil) }
