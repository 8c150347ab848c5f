package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

// settings are the options of a run. The summary repeats the exported ones.
type settings struct {
	URL         string  `json:"url"`
	Closed      bool    `json:"closed"`
	Rate        float64 `json:"rate_per_s,omitempty"`
	Connections int     `json:"connections"`
	Duration    float64 `json:"duration_s"`
	URLs        string  `json:"urls,omitempty"`
	Once        bool    `json:"once,omitempty"`
	Zipf        float64 `json:"zipf,omitempty"`
	Revalidate  bool    `json:"revalidate"`
	Decode      float64 `json:"decode"`

	duration time.Duration
	server   netip.AddrPort
	host     string
	paths    []string
}

const help = `Usage: load -closed|-rate N [flags] http://127.0.0.1:PORT/PATH

Sends requests to a server on this machine over keep-alive connections, checks every
answer, and prints one summary in JSON. With -closed each connection sends its next
request as soon as it has the answer, which shows the server's highest rate. With -rate N
requests fall due each second whatever the server does, and latencies count from then.

`

// parseSettings parses the arguments. It prints the help if they ask for it.
func parseSettings(args []string, out io.Writer) (*settings, error) {
	s := new(settings)
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed in one line
	flags.BoolVar(&s.Closed, "closed", false, "closed loop: send the next request as soon as there is an answer")
	flags.Float64Var(&s.Rate, "rate", 0, "open loop: `requests` per second")
	flags.IntVar(&s.Connections, "connections", 32, "number of `connections`, and so of concurrent requests")
	flags.DurationVar(&s.duration, "duration", 10*time.Second, "the `time` during which requests are sent")
	flags.StringVar(&s.URLs, "urls", "", "`file` with one path a line, the most popular first, to request instead of the URL's path")
	flags.BoolVar(&s.Once, "once", false, "request each path once, then end")
	flags.Float64Var(&s.Zipf, "zipf", 0, "request paths at random, path k k^`exponent` times less often than the first, instead of in their order")
	flags.BoolVar(&s.Revalidate, "revalidate", false, "request every path once at first, and then always with the entity tag of that answer, expecting 304 instead of 200")
	flags.Float64Var(&s.Decode, "decode", 0, "`share` of the answers, 1 for all, to be decoded after the run as PNG or WebP; of a path with size=, the height must be that")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, err
	case flags.NArg() != 1:
		return nil, fmt.Errorf("one URL must follow the flags, not %q", flags.Args())
	}
	s.URL, s.Duration = flags.Arg(0), s.duration.Seconds()
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, s.parseURL()
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
	case !(s.Decode >= 0 && s.Decode <= 1):
		return errors.New("-decode must be from 0 to 1")
	case s.Decode > 0 && s.Revalidate:
		return errors.New("-decode needs answers with bodies, and -revalidate has none")
	case !(s.Zipf >= 0 && s.Zipf <= 100):
		return errors.New("-zipf must be from 0 to 100")
	case s.Zipf > 0 && s.Once:
		return errors.New("-once cannot be combined with -zipf")
	}
	return nil
}

// parseURL accepts only URLs of servers on this machine.
func (s *settings) parseURL() error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080/path", s.URL)
	}
	name, port := u.Hostname(), cmp.Or(u.Port(), "80")
	if name == "localhost" {
		name = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(name); err != nil {
		return fmt.Errorf("%s may be on another machine; load is only sent to 127.0.0.1, another loopback address, or localhost", name)
	}
	if s.server, err = load.Loopback(net.JoinHostPort(name, port)); err != nil {
		return err
	}
	s.host, s.paths = u.Host, []string{u.RequestURI()}
	if s.URLs == "" {
		return nil
	}
	if s.paths[0] != "/" {
		return errors.New("the URL must have no path beside -urls")
	}
	s.paths, err = readPaths(s.URLs)
	return err
}

func readPaths(name string) (paths []string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		path := strings.TrimRight(lines.Text(), "\r")
		switch {
		case path == "":
			continue
		case path[0] != '/' || strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
			return nil, fmt.Errorf("line %d of %s, %.60q, is not a path such as /avatar/1", n, name, path)
		}
		paths = append(paths, path)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there is no path in %s", name)
	}
	return paths, nil
}

// stream returns the requests, in their order, repeatedly, unless the settings say otherwise.
func (s *settings) stream(ctx context.Context) (*load.Stream, error) {
	stream := &load.Stream{Connections: s.Connections, Rate: s.Rate, Statuses: []int{fasthttp.StatusOK}}
	var tags []string
	if s.Revalidate {
		var err error
		if tags, err = s.fetchTags(ctx); err != nil {
			return nil, fmt.Errorf("fetch entity tags: %w", err)
		}
		stream.Statuses = []int{fasthttp.StatusNotModified}
	}
	for i, path := range s.paths {
		condition := ""
		if tags != nil {
			condition = "If-None-Match: " + tags[i] + "\r\n"
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.host, condition))
	}
	switch {
	case s.Once:
		stream.Order = load.Once(len(s.paths))
	case s.Zipf > 0:
		popularity, random := load.NewZipf(len(s.paths), s.Zipf), rand.New(rand.NewPCG(1, 0))
		stream.Order = func() int { return popularity.Draw(random) }
	}
	return stream, nil
}
