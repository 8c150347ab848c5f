package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/command"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/settings"
)

// healthCommand says whether the edge on this machine is ready; that it is not
// is an error.
func healthCommand(_ context.Context, i command.Invocation) error {
	if _, err := i.ParseArg(command.Flags("edge health"), ""); err != nil {
		return err
	}
	config, err := settings.Read[OpsListener](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := serve.Probe(string(config.OpsListen)); err != nil {
		return err
	}
	fmt.Fprintln(i.Stdout, "edge is ready")
	return nil
}
