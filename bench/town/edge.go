package town

import (
	"context"
	"os/exec"

	"github.com/veneer-skins/veneer/bench/loopback"
	"github.com/veneer-skins/veneer/bench/rivals"
)

// StartEdge starts another edge of the town, which ends with it, with its defaults but
// for settings as NAME=VALUE: nothing else is set but what has no default, and where it
// listens. For operators that is returned with it.
func (t *Site) StartEdge(ctx context.Context, settings ...string) (edge *rivals.Server, operators string, err error) {
	var public string
	if public, operators, err = loopback.FreeAddresses(); err != nil {
		return nil, "", err
	}
	p, err := rivals.Run(t.env, "edge", nil, append(settings,
		"EDGE_LISTEN="+public, "EDGE_OPS_LISTEN="+operators,
		"EDGE_CORE_URL="+t.coreURL, "EDGE_CORE_SECRETS="+secret, "EDGE_OBJECTS_URL=file://"+Textures(t.env),
	), t.program, "serve")
	if err != nil {
		return nil, "", err
	}
	t.closers = append(t.closers, p.Stop)
	if err := p.Await(ctx, func() error {
		health := exec.CommandContext(ctx, t.program, "health")
		health.Env = []string{"EDGE_OPS_LISTEN=" + operators}
		return health.Run()
	}); err != nil {
		return nil, "", err
	}
	return &rivals.Server{Name: "edge", Process: p, Address: public, Conditional: public}, operators, nil
}
