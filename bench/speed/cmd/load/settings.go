package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

// settings are the options of a run. The summary repeats the exported ones.
type settings struct {
	URL         string   `json:"url"`
	Closed      bool     `json:"closed"`
	Rate        float64  `json:"rate_per_s,omitempty"`
	Connections int      `json:"connections"`
	Threads     int      `json:"threads"`
	Duration    float64  `json:"duration_s"`
	URLs        string   `json:"urls,omitempty"`
	Order       string   `json:"order"`
	Exponent    float64  `json:"zipf,omitempty"`
	Seed        uint64   `json:"seed"`
	Headers     []string `json:"headers,omitempty"`
	Expect      []int    `json:"expect"`
	Revalidate  bool     `json:"revalidate"`
	Decode      float64  `json:"decode"`

	duration time.Duration
	output   string
	server   netip.AddrPort
	host     string
	path     string
}

// Orders of requests.
const (
	listed = "listed"
	once   = "once"
	random = "random"
	zipf   = "zipf"
)

const help = `Usage: load -closed|-rate N [flags] http://127.0.0.1:PORT/PATH

Sends requests to a server on this machine over keep-alive connections, checks every
answer, and prints one summary in JSON. With -closed each connection sends its next
request as soon as it has the answer, which shows the server's highest rate. With -rate N
requests fall due each second whatever the server does, and latencies count from then.

`

// newFlags returns the flags that fill the settings, and the one that is parsed afterwards.
func newFlags(s *settings) (flags *flag.FlagSet, expect *string) {
	flags = flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed in one line
	flags.BoolVar(&s.Closed, "closed", false, "closed loop: send the next request as soon as there is an answer")
	flags.Float64Var(&s.Rate, "rate", 0, "open loop: `requests` per second")
	flags.IntVar(&s.Connections, "connections", 32, "number of `connections`, and so of concurrent requests")
	flags.IntVar(&s.Threads, "threads", 1, "number of `threads` that share connections and rate; one can saturate a server with one processor")
	flags.DurationVar(&s.duration, "duration", 10*time.Second, "the `time` during which requests are sent")
	flags.StringVar(&s.URLs, "urls", "", "`file` with one path a line, the most popular first, to request instead of the URL's path")
	flags.BoolFunc("once", "request each path once, then end", s.order(once))
	flags.BoolFunc("random", "request paths at random instead of in their order", s.order(random))
	flags.Func("zipf", "request paths at random, path k k^`exponent` times less often than the first", func(value string) (err error) {
		if s.Exponent, err = strconv.ParseFloat(value, 64); err != nil {
			return errors.New("it is not a number")
		}
		return s.order(zipf)("true")
	})
	flags.Uint64Var(&s.Seed, "seed", 1, "`number` that seeds the order of -random and -zipf")
	flags.Func("header", "header `line` to add to every request, such as 'Accept: image/webp'; can be repeated", s.addHeader)
	expect = flags.String("expect", "", "expected `statuses`, separated by commas (default 200; 304 with -revalidate)")
	flags.BoolVar(&s.Revalidate, "revalidate", false, "request every path once at first, and then always with the entity tag of that answer")
	flags.Float64Var(&s.Decode, "decode", 0, "`share` of the answers of status 200, 1 for all, to be decoded after the run as PNG or WebP; of a path with size=, the height must be that")
	flags.StringVar(&s.output, "o", "", "`file` for the summary, instead of the standard output")
	return flags, expect
}

func (s *settings) order(name string) func(string) error {
	return func(value string) error {
		if chosen, err := strconv.ParseBool(value); err != nil || !chosen {
			return err
		}
		if s.Order != "" && s.Order != name {
			return fmt.Errorf("it cannot be combined with -%s", s.Order)
		}
		s.Order = name
		return nil
	}
}

func (s *settings) addHeader(line string) error {
	name, _, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsAny(line, "\r\n") {
		return errors.New("a header is 'Name: value'")
	}
	s.Headers = append(s.Headers, line)
	return nil
}

func printHelp(out io.Writer) {
	fmt.Fprint(out, help)
	flags, _ := newFlags(new(settings))
	flags.SetOutput(out)
	flags.PrintDefaults()
}

func parseSettings(args []string) (*settings, error) {
	s := new(settings)
	flags, expect := newFlags(s)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.Order == "" {
		s.Order = listed
	}
	s.Duration = s.duration.Seconds()
	if err := s.parseExpect(*expect); err != nil {
		return nil, err
	}
	if flags.NArg() != 1 {
		return nil, fmt.Errorf("one URL must follow the flags, not %q", flags.Args())
	}
	if err := s.parseURL(flags.Arg(0)); err != nil {
		return nil, err
	}
	return s, s.check()
}

func (s *settings) parseExpect(statuses string) error {
	switch {
	case statuses == "" && s.Revalidate:
		statuses = "304"
	case statuses == "":
		statuses = "200"
	}
	for text := range strings.SplitSeq(statuses, ",") {
		status, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || status < 200 || status > 599 {
			return fmt.Errorf("-expect: %q is not a status from 200 to 599", text)
		}
		s.Expect = append(s.Expect, status)
	}
	return nil
}

// parseURL accepts only URLs of servers on this machine.
func (s *settings) parseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080/path", text)
	}
	name, port := u.Hostname(), u.Port()
	if name == "localhost" {
		name = "127.0.0.1"
	}
	if port == "" {
		port = "80"
	}
	if _, err := netip.ParseAddr(name); err != nil {
		return fmt.Errorf("%s may be on another machine; load is only sent to 127.0.0.1, another loopback address, or localhost", name)
	}
	if s.server, err = load.Loopback(net.JoinHostPort(name, port)); err != nil {
		return err
	}
	s.URL, s.host, s.path = text, u.Host, u.RequestURI()
	return nil
}

func (s *settings) check() error {
	switch { // written so that NaN is rejected, too
	case s.Closed == (s.Rate != 0):
		return errors.New("either -closed or a -rate is needed")
	case !s.Closed && !(s.Rate > 0 && s.Rate <= 1e9):
		return errors.New("-rate must be above 0")
	case s.duration <= 0:
		return errors.New("-duration must be above 0")
	case s.Connections < 1:
		return errors.New("-connections must be at least 1")
	case s.Threads < 1 || s.Threads > s.Connections:
		return errors.New("-threads must be from 1 to the number of connections")
	case !(s.Decode >= 0 && s.Decode <= 1):
		return errors.New("-decode must be from 0 to 1")
	case s.Decode > 0 && !slices.Contains(s.Expect, fasthttp.StatusOK):
		return errors.New("-decode needs -expect with 200")
	case !(s.Exponent >= 0 && s.Exponent <= 100):
		return errors.New("-zipf must be from 0 to 100")
	case s.URLs != "" && s.path != "/":
		return errors.New("the URL must have no path beside -urls")
	}
	return nil
}

// stream returns the share of one thread.
func (s *settings) stream(thread int, requests *requestList) *load.Stream {
	stream := &load.Stream{Connections: s.Connections / s.Threads, Requests: requests.requests, Statuses: s.Expect}
	stream.Rate, stream.Phase = s.Rate/float64(s.Threads), float64(thread)/float64(s.Threads)
	if thread < s.Connections%s.Threads {
		stream.Connections++
	}
	n := len(requests.requests)
	source := rand.New(rand.NewPCG(s.Seed, uint64(thread)))
	switch s.Order {
	case random:
		stream.Order = func() int { return source.IntN(n) }
	case zipf:
		stream.Order = func() int { return requests.popularity.Draw(source) }
	default:
		// The threads alternate.
		next := thread
		stream.Order = func() int {
			if next >= n && s.Order == once {
				return -1
			}
			index := next % n
			next += s.Threads
			return index
		}
	}
	return stream
}
