// Command core is the program that remembers: the API of accounts, players and
// textures, and what edges ask.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

func main() { os.Exit(program().Main()) }

// program is core with its subcommands, in the order in which help lists them.
func program() cli.Program {
	return cli.New[settings]("core", "remembers users, players and textures: the API of Veneer, a skin-hosting service.", prefix,
		cli.Command{Name: "serve", Help: "answer the API and the edges until told to stop", Settings: config.Help[settings], Run: serveCommand},
		cli.Command{Name: "migrate", Help: "make the database's schema and the texture store ready", Settings: config.Help[migrateConfig], Run: migrateCommand},
		cli.Command{Name: "user add", ArgsUsage: "EMAIL", Help: "add a user; the password is read from standard input", Settings: config.Help[userAddConfig], Run: userAddCommand},
		cli.Command{Name: "user passwd", ArgsUsage: "EMAIL", Help: "give a user another password, read from standard input, and sign them out everywhere", Settings: config.Help[postgres.Config], Run: userPasswdCommand},
		cli.Command{Name: "user permission", ArgsUsage: "EMAIL", Help: "ban a user, let one in again, or make one an administrator", Settings: config.Help[postgres.Config], Run: userPermissionCommand},
		cli.Command{Name: "texture add", ArgsUsage: "FILE", Help: "add a texture to a user's closet", Settings: config.Help[textureAddConfig], Run: textureAddCommand},
		cli.Command{Name: "notify", ArgsUsage: "TITLE", Help: "send a notification, whose Markdown is read from standard input", Settings: config.Help[postgres.Config], Run: notifyCommand},
		cli.Command{Name: "sweep", Help: "remove texture files that no texture names, and tell which textures have no file", Settings: config.Help[sweepConfig], Run: sweepCommand},
		cli.Command{Name: "health", Help: "ask the running core whether it is ready", Settings: config.Help[OpsListener], Run: healthCommand},
	)
}
