package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/settings"
)

// healthCommand asks the running core whether it is ready.
func healthCommand(_ context.Context, p program) error {
	if err := parse(p, newFlags("health"), ""); err != nil {
		return err
	}
	config, err := settings.Read[Operators](prefix, p.environ)
	if err != nil {
		return err
	}
	if err := serve.Probe(config.OpsListen); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "ready")
	return nil
}
