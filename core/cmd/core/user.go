package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

// userAddConfig is what the command reads.
type userAddConfig struct {
	postgres.Config
	Players core.PlayerLimits `envPrefix:"PLAYER_"`
	Scores  core.Scores       `envPrefix:"SCORE_"`
}

// userAddCommand adds a user without asking them.
func userAddCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core user add")
	nickname := flags.String("nickname", "", "display name; the e-mail's local part if not given")
	player := flags.String("player", "", "name of a first player")
	permission := flags.Int("permission", int(core.Normal), "0 normal, 1 administrator, 2 super administrator")
	verified := flags.Bool("verified", true, "whether the e-mail address counts as verified")
	email, err := i.ParseArg(flags, "EMAIL")
	if err != nil {
		return err
	}
	if *permission < int(core.Normal) || *permission > int(core.SuperAdministrator) {
		return fmt.Errorf("-permission is %d, but must be 0, 1 or 2", *permission)
	}
	if *nickname == "" {
		*nickname, _, _ = strings.Cut(email, "@")
	}
	config, err := config.Read[userAddConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	names, err := playerNames(config.Players)
	if err != nil {
		return err
	}
	password, err := readPassword(i.Stdin)
	if err != nil {
		return err
	}

	db, err := openReady(ctx, config.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	user, err := core.NewUsers(db, core.NewPasswords(), names, config.Scores, false).RegisterBy(ctx, core.CLIActor, core.Registration{
		Email: email, Password: password, Nickname: *nickname, PlayerName: *player, Verified: *verified,
	}, core.Permission(*permission))
	if err != nil {
		return err
	}
	numberChanges(ctx, db)
	fmt.Fprintf(i.Stdout, "user %d added: %s\n", user.ID, user.Email)
	return nil
}

// readPassword returns the first line of the input.
func readPassword(input io.Reader) (string, error) {
	password, err := bufio.NewReader(input).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password from standard input: %w", err)
	}
	return strings.TrimRight(password, "\r\n"), nil
}

// userPasswdConfig is what the command reads. Of the mail server it need only know whether
// there is one: the cores send what it puts into the outbox.
type userPasswdConfig struct {
	postgres.Config
	MailHost string `env:"SMTP_HOST"`
}

// userPasswdCommand gives a user another password. A site that sends e-mail tells the
// user.
func userPasswdCommand(ctx context.Context, i cli.Invocation) error {
	email, err := i.ParseArg(cli.Flags("core user passwd"), "EMAIL")
	if err != nil {
		return err
	}
	password, err := readPassword(i.Stdin)
	if err != nil {
		return err
	}
	config, err := config.Read[userPasswdConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	return withUser(ctx, config.Config, email, func(db *postgres.DB, user core.User) error {
		if _, err := core.NewAccounts(db, nil, core.NewPasswords(), config.MailHost != "").ResetPasswordBy(ctx, core.CLIActor, user.ID, password); err != nil {
			return err
		}
		fmt.Fprintf(i.Stdout, "user %d has a new password, and is signed out everywhere: %s\n", user.ID, user.Email)
		return nil
	})
}

// userPermissionCommand changes what a user may do.
func userPermissionCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core user permission")
	permission := flags.Int("set", int(core.Normal), "-1 banned, 0 normal, 1 administrator, 2 super administrator (required)")
	email, err := i.ParseArg(flags, "EMAIL")
	if err != nil {
		return err
	}
	isSet := false
	flags.Visit(func(*flag.Flag) { isSet = true })
	if !isSet {
		return errors.New("-set must be given")
	}
	if *permission < int(core.Banned) || *permission > int(core.SuperAdministrator) {
		return fmt.Errorf("-set is %d, but must be -1, 0, 1 or 2", *permission)
	}
	config, err := config.Read[postgres.Config](prefix, i.Environ)
	if err != nil {
		return err
	}
	return withUser(ctx, config, email, func(db *postgres.DB, user core.User) error {
		if _, err := core.NewAccounts(db, nil, nil, false).SetPermissionBy(ctx, core.CLIActor, user.ID, int64(*permission)); err != nil {
			return err
		}
		fmt.Fprintf(i.Stdout, "user %d has permission %d: %s\n", user.ID, *permission, user.Email)
		return nil
	})
}

// withUser opens the database and does something to the user with an e-mail
// address.
func withUser(ctx context.Context, config postgres.Config, email string, do func(*postgres.DB, core.User) error) error {
	db, err := openReady(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close()
	user, err := core.NewUsers(db, nil, nil, core.Scores{}, false).ByEmail(ctx, email)
	if err != nil {
		return err
	}
	return do(db, user)
}

// openDatabase opens the database for a command that needs nothing else.
func openDatabase(ctx context.Context, i cli.Invocation) (*postgres.DB, error) {
	config, err := config.Read[postgres.Config](prefix, i.Environ)
	if err != nil {
		return nil, err
	}
	return openReady(ctx, config)
}

// openReady opens a database that must answer and have its schema.
func openReady(ctx context.Context, config postgres.Config) (*postgres.DB, error) {
	db, err := postgres.Open(ctx, config)
	if err == nil {
		if err = db.Check(ctx); err == nil {
			return db, nil
		}
		db.Close()
	}
	return nil, fmt.Errorf("%s%w", prefix, err)
}

// numberChanges has the running cores stream what was changed at once. Without it
// their next poll would find it, so a failure is none of the user's concern.
func numberChanges(ctx context.Context, db *postgres.DB) { _, _ = db.NumberChanges(ctx) }
