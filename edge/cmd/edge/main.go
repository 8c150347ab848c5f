// Command edge serves pictures of textures, which it renders on demand and caches.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

func main() { os.Exit(program().Main()) }

// program returns edge with its subcommands, in the order of the help text.
func program() cli.Program {
	return cli.New[settings]("edge", "serves pictures of textures, rendered on demand, for Veneer, a skin-hosting service.", prefix,
		cli.Command{Name: "serve", Help: "serve pictures until SIGTERM", Settings: config.Help[settings], Run: serveCommand},
		cli.Command{Name: "warm", ArgsUsage: "[HASH ... | -]", Help: "load common pictures of given or of the most liked textures into the caches of running edges", Settings: config.Help[warmConfig], Run: warmCommand},
		httpserver.HealthCommand("edge", prefix, func(cfg OpsListener) httpserver.Address { return cfg.OpsListen }),
	)
}
