package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

// requestList is the list of paths to request.
type requestList struct {
	settings   *settings
	paths      []string
	requests   [][]byte // one for each path
	popularity load.Zipf
}

// requestList returns the list that the settings describe.
func (s *settings) requestList() (*requestList, error) {
	l := &requestList{settings: s, paths: []string{s.path}}
	if s.URLs != "" {
		var err error
		if l.paths, err = readPaths(s.URLs); err != nil {
			return nil, fmt.Errorf("-urls: %w", err)
		}
	}
	if s.Order == zipf {
		l.popularity = load.NewZipf(len(l.paths), s.Exponent)
	}
	l.write(nil)
	return l, nil
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

// write builds all requests, conditional ones if there are tags.
func (r *requestList) write(tags []string) {
	lines := slices.Concat([]string{" HTTP/1.1", "Host: " + r.settings.host}, r.settings.Headers, []string{""})
	rest := strings.Join(lines, "\r\n")
	// They share one allocation, as there may be millions.
	var all []byte
	ends := make([]int, len(r.paths))
	for i, path := range r.paths {
		all = append(all, "GET "+path+rest...)
		if tags != nil {
			all = append(all, "If-None-Match: "+tags[i]+"\r\n"...)
		}
		all = append(all, "\r\n"...)
		ends[i] = len(all)
	}
	r.requests = make([][]byte, len(r.paths))
	start := 0
	for i, end := range ends {
		r.requests[i] = all[start:end]
		start = end
	}
}

// tagConnections is the number of connections over which tags are fetched, tagTimeout the longest
// that a response may take.
const (
	tagConnections = 8
	tagTimeout     = 10 * time.Second
)

// fetchTags requests every path once and makes all requests conditional on the entity tags.
func (r *requestList) fetchTags(ctx context.Context) error {
	tags := make([]string, len(r.paths))
	client := &fasthttp.HostClient{
		Addr: r.settings.server.String(), MaxConns: tagConnections, ReadTimeout: tagTimeout, WriteTimeout: tagTimeout,
		DisablePathNormalizing: true, // the path must be the same later
	}
	defer client.CloseIdleConnections()
	workers, ctx := errgroup.WithContext(ctx)
	for first := range tagConnections {
		workers.Go(func() error {
			var request fasthttp.Request
			var response fasthttp.Response
			for i := first; i < len(r.paths) && ctx.Err() == nil; i += tagConnections {
				request.Reset()
				request.SetRequestURI("http://" + r.settings.host + r.paths[i])
				for _, line := range r.settings.Headers {
					name, value, _ := strings.Cut(line, ":")
					request.Header.Add(name, strings.TrimSpace(value))
				}
				if err := client.Do(&request, &response); err != nil {
					return fmt.Errorf("request %s: %w", r.paths[i], err)
				}
				tags[i] = string(response.Header.Peek(fasthttp.HeaderETag))
				if status := response.StatusCode(); status != fasthttp.StatusOK || tags[i] == "" {
					return fmt.Errorf("the answer to %s has status %d and tag %q", r.paths[i], status, tags[i])
				}
			}
			return ctx.Err()
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	r.write(tags)
	return nil
}
