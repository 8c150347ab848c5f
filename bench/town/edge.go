package town

import (
	"context"
	"os/exec"

	"github.com/veneer-skins/veneer/bench/rivals"
)

// startEdge starts the edge with its defaults: nothing is set but what has none,
// and where it listens: for operators, too, which is returned with it.
func startEdge(ctx context.Context, place rivals.Place, binary, textures, core string) (edge *rivals.Server, operators string, err error) {
	var public string
	if public, operators, err = rivals.FreeAddresses(); err != nil {
		return nil, "", err
	}
	p, err := rivals.Run(place, "edge", nil, []string{
		"EDGE_LISTEN=" + public, "EDGE_OPS_LISTEN=" + operators,
		"EDGE_CORE_URL=" + core, "EDGE_CORE_SECRETS=" + secret, "EDGE_OBJECTS_URL=file://" + textures,
	}, binary, "serve")
	if err != nil {
		return nil, "", err
	}
	if err := p.Await(ctx, func() error {
		health := exec.CommandContext(ctx, binary, "health")
		health.Env = []string{"EDGE_OPS_LISTEN=" + operators}
		return health.Run()
	}); err != nil {
		p.Stop()
		return nil, "", err
	}
	return &rivals.Server{Name: "edge", Process: p, Address: public, Conditional: public}, operators, nil
}
