package main

import (
	"context"
	"os/exec"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/rivals"
)

// startEdge starts the edge with its defaults: nothing is set but what has none,
// and where it listens.
func startEdge(ctx context.Context, place rivals.Place, binary, textures, core string) (*rivals.Server, error) {
	public, operators, err := rivals.FreeAddresses()
	if err != nil {
		return nil, err
	}
	p, err := rivals.Run(place, "edge", nil, []string{
		"EDGE_LISTEN=" + public, "EDGE_OPS_LISTEN=" + operators,
		"EDGE_CORE_URL=" + core, "EDGE_CORE_SECRETS=" + secret, "EDGE_OBJECTS_URL=file://" + textures,
	}, binary, "serve")
	if err != nil {
		return nil, err
	}
	if err := p.Await(ctx, func() error {
		health := exec.CommandContext(ctx, binary, "health")
		health.Env = []string{"EDGE_OPS_LISTEN=" + operators}
		return health.Run()
	}); err != nil {
		p.Stop()
		return nil, err
	}
	return &rivals.Server{Name: "edge", Process: p, Address: public, Conditional: public}, nil
}

// stream returns requests for a list of answers, all of one status; tags makes them
// conditional.
func stream(s *rivals.Server, r *rivals.Record, answers []rivals.Answer, tags []string) *load.Stream {
	requests := &load.Stream{Connections: connections, Statuses: []int{answers[0].Status}}
	for i := range answers {
		a := &answers[i]
		request := "GET " + s.Target(a) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
		if tags != nil {
			request += "If-None-Match: " + tags[i] + "\r\n"
		}
		requests.Requests = append(requests.Requests, []byte(request+"\r\n"))
		requests.Lengths = append(requests.Lengths, len(r.Body(a)))
	}
	return requests
}
