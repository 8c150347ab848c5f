package main

import (
	"context"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/cli"
)

// keysYggdrasilCommand prints a new key that signs profiles.
func keysYggdrasilCommand(_ context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("core keys yggdrasil"), ""); err != nil {
		return err
	}
	key, err := core.NewProfileKey()
	if err != nil {
		return err
	}
	_, err = i.Stdout.Write(key)
	return err
}
