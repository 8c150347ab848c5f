package main

import (
	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
)

// stream returns requests to a server for a list of responses, all of one status; with tags they are
// conditional.
func stream(s *baseline.Server, r *baseline.Record, responses []baseline.Response, tags []string) *load.Stream {
	requests := &load.Stream{Connections: connections, TLS: s.TLS, Statuses: []int{responses[0].Status}}
	for i := range responses {
		a := &responses[i]
		request := "GET " + s.Target(a) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
		if tags != nil {
			request += "If-None-Match: " + tags[i] + "\r\n"
		}
		requests.Requests = append(requests.Requests, []byte(request+"\r\n"))
		requests.Lengths = append(requests.Lengths, len(r.Body(a)))
	}
	return requests
}
