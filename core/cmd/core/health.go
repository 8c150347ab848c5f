package main

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/command"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/settings"
)

// healthCommand asks the running core whether it is ready.
func healthCommand(_ context.Context, i command.Invocation) error {
	if _, err := i.ParseArg(command.Flags("core health"), ""); err != nil {
		return err
	}
	config, err := settings.Read[OpsListener](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := serve.Probe(string(config.OpsListen)); err != nil {
		return err
	}
	fmt.Fprintln(i.Stdout, "ready")
	return nil
}
