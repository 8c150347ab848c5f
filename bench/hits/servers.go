package main

import (
	"context"
	"net/netip"
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

// replay returns the load of requests to a server for a list of answers; tags makes
// them conditional.
func replay(s *rivals.Server, address string, cpu int, r *rivals.Record, answers []rivals.Answer, tags []string) (load.Replay, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return load.Replay{}, err
	}
	questions := make([]load.Question, len(answers))
	for i := range answers {
		a := &answers[i]
		request := "GET " + s.Target(a) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
		if tags != nil {
			request += "If-None-Match: " + tags[i] + "\r\n"
		}
		questions[i] = load.Question{Bytes: []byte(request + "\r\n"), Status: a.Status, Length: len(r.Body(a))}
	}
	return load.Replay{Address: parsed, Connections: connections, CPU: cpu, Questions: questions}, nil
}
