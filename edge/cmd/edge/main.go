// Command edge is the program that shows: pictures of textures, drawn when
// somebody asks, for everybody.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/shared/command"
	"github.com/veneer-skins/veneer/shared/settings"
)

func main() { os.Exit(program().Main()) }

// program is edge with its subcommands, in the order in which help lists them.
func program() command.Program {
	return command.New[config]("edge", "shows pictures of textures, drawn on demand: the images of Veneer, a skin-hosting service.", prefix,
		command.Command{Name: "serve", Help: "serve pictures until told to stop", Settings: settings.Help[config], Run: serveCommand},
		command.Command{Name: "warm", ArgsUsage: "[HASH ... | -]", Help: "have running edges make common pictures ahead, of given textures or of the most liked", Settings: settings.Help[warmConfig], Run: warmCommand},
		command.Command{Name: "health", Help: "ask the running edge whether it is ready", Settings: settings.Help[OpsListener], Run: healthCommand},
	)
}
