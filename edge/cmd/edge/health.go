package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/settings"
)

// healthCommand says whether the edge on this machine is ready; that it is not
// is an error.
func healthCommand(_ context.Context, p program) error {
	config, err := settings.Read[Operators](prefix, p.environ)
	if err != nil {
		return err
	}
	if err := serve.Probe(config.OpsListen); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "edge is ready")
	return nil
}
