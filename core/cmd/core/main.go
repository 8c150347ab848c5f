// Command core serves the API of users, players and textures, and the API for edges.
package main

import (
	"os"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

func main() { os.Exit(program().Main()) }

// program returns core with its subcommands, in the order of the help text.
func program() cli.Program {
	return cli.New[settings]("core", "serves the API of users, players and textures for Veneer, a skin-hosting service.", prefix,
		cli.Command{Name: "serve", Help: "serve the API and the edges until SIGTERM", Settings: config.Help[settings], Run: serveCommand},
		cli.Command{Name: "migrate", Help: "migrate the database's schema and prepare the texture store", Settings: config.Help[migrateConfig], Run: migrateCommand},
		cli.Command{Name: "user add", ArgsUsage: "EMAIL", Help: "add a user; asks for the password, or reads it from standard input", Settings: config.Help[userAddConfig], Run: userAddCommand},
		cli.Command{Name: "user passwd", ArgsUsage: "EMAIL", Help: "set a user's password, which it asks for or reads from standard input, and end all of the user's sessions", Settings: config.Help[postgres.Config], Run: userPasswdCommand},
		cli.Command{Name: "user permission", ArgsUsage: "EMAIL", Help: "set a user's permission: banned, normal or administrator", Settings: config.Help[postgres.Config], Run: userPermissionCommand},
		cli.Command{Name: "texture add", ArgsUsage: "FILE", Help: "add a texture to a user's closet", Settings: config.Help[textureAddConfig], Run: textureAddCommand},
		cli.Command{Name: "notify", ArgsUsage: "TITLE", Help: "send a notification, whose Markdown is read from standard input", Settings: config.Help[postgres.Config], Run: notifyCommand},
		cli.Command{Name: "sweep", Help: "remove texture files that no texture references, and list textures without a file", Settings: config.Help[sweepConfig], Run: sweepCommand},
		cli.Command{Name: "backup verify", ArgsUsage: "DIR", Help: "check every byte of a backup, without database and texture store", Run: backupVerifyCommand},
		cli.Command{Name: "backup", ArgsUsage: "DIR", Help: "back the database and the texture files up into a directory, with pg_dump", Settings: config.Help[sweepConfig], Run: backupCommand},
		cli.Command{Name: "restore", ArgsUsage: "DIR", Help: "restore a backup, with pg_restore and psql, and end all sessions; no core may run", Settings: config.Help[migrateConfig], Run: restoreCommand},
		cli.Command{Name: "doctor", Help: "check settings, database, texture store, mail, clock, public URL and backups, and say what to do", Settings: config.Help[settings], Run: doctorCommand},
		cli.Command{Name: "keys yggdrasil", Help: "print a new key for CORE_YGGDRASIL_KEY_FILE, once for all cores", Run: keysYggdrasilCommand},
		httpserver.HealthCommand("core", prefix, func(cfg OpsListener) httpserver.Address { return cfg.OpsListen }),
	)
}
