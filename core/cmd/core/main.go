// Command core is the program that remembers: the API of accounts, players and
// textures, and what edges ask.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/command"
	"github.com/veneer-skins/veneer/shared/settings"
)

func main() { os.Exit(program().Main()) }

// program is core with its subcommands, in the order in which help lists them.
func program() command.Program {
	return command.New[config]("core", "remembers users, players and textures: the API of Veneer, a skin-hosting service.", prefix,
		command.Command{Name: "serve", Help: "answer the API and the edges until told to stop", Settings: settings.Help[config], Run: serveCommand},
		command.Command{Name: "migrate", Help: "make the database's schema and the texture store ready", Settings: settings.Help[migrateConfig], Run: migrateCommand},
		command.Command{Name: "user add", ArgsUsage: "EMAIL", Help: "add a user; the password is read from standard input", Settings: settings.Help[userAddConfig], Run: userAddCommand},
		command.Command{Name: "user passwd", ArgsUsage: "EMAIL", Help: "give a user another password, read from standard input, and sign them out everywhere", Settings: settings.Help[postgres.Config], Run: userPasswdCommand},
		command.Command{Name: "user permission", ArgsUsage: "EMAIL", Help: "ban a user, let one in again, or make one an administrator", Settings: settings.Help[postgres.Config], Run: userPermissionCommand},
		command.Command{Name: "texture add", ArgsUsage: "FILE", Help: "add a texture to a user's closet", Settings: settings.Help[textureAddConfig], Run: textureAddCommand},
		command.Command{Name: "notify", ArgsUsage: "TITLE", Help: "send a notification, whose Markdown is read from standard input", Settings: settings.Help[postgres.Config], Run: notifyCommand},
		command.Command{Name: "sweep", Help: "remove texture files that no texture names, and tell which textures have no file", Settings: settings.Help[sweepConfig], Run: sweepCommand},
		command.Command{Name: "health", Help: "ask the running core whether it is ready", Settings: settings.Help[OpsListener], Run: healthCommand},
	)
}
