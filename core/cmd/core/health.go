package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// healthCommand asks the running core whether it is ready.
func healthCommand(_ context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("core health"), ""); err != nil {
		return err
	}
	config, err := config.Read[OpsListener](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := httpserver.Probe(string(config.OpsListen)); err != nil {
		return err
	}
	fmt.Fprintln(i.Stdout, "ready")
	return nil
}
