package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// healthCommand checks whether the core on this machine is ready. It returns an error if not.
func healthCommand(_ context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("core health"), ""); err != nil {
		return err
	}
	cfg, err := config.Read[OpsListener](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := httpserver.Probe(string(cfg.OpsListen)); err != nil {
		return err
	}
	fmt.Fprintln(i.Stdout, "ready")
	return nil
}
