// Command edge is the program that shows: pictures of textures, drawn when
// somebody asks, for everybody.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

func main() { os.Exit(program().Main()) }

// program is edge with its subcommands, in the order in which help lists them.
func program() cli.Program {
	return cli.New[settings]("edge", "shows pictures of textures, drawn on demand: the images of Veneer, a skin-hosting service.", prefix,
		cli.Command{Name: "serve", Help: "serve pictures until told to stop", Settings: config.Help[settings], Run: serveCommand},
		cli.Command{Name: "warm", ArgsUsage: "[HASH ... | -]", Help: "have running edges make common pictures ahead, of given textures or of the most liked", Settings: config.Help[warmConfig], Run: warmCommand},
		cli.Command{Name: "health", Help: "ask the running edge whether it is ready", Settings: config.Help[OpsListener], Run: healthCommand},
	)
}
