package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

// userAddConfig is the settings of core user add.
type userAddConfig struct {
	postgres.Config
	Site    string            `env:"SITE_NAME" envDefault:"Veneer"` // which no password may be
	Players core.PlayerLimits `envPrefix:"PLAYER_"`
	Scores  core.ScorePrices  `envPrefix:"SCORE_"`
}

// userAddCommand adds a user, by default with a verified e-mail address.
func userAddCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core user add")
	nickname := flags.String("nickname", "", "display name (default: the local part of the e-mail address)")
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
	cfg, err := config.Read[userAddConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	names, err := playerNames(cfg.Players)
	if err != nil {
		return err
	}
	password, err := readPassword(ctx, i.Stdin)
	if err != nil {
		return err
	}

	db, err := openReady(ctx, cfg.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	user, err := core.NewUsers(db, core.NewPasswords(cfg.Site), names, cfg.Scores, nil, false).Add(ctx, core.CLIActor, core.Registration{
		Email: email, Password: password, Nickname: *nickname, PlayerName: *player, Verified: *verified,
	}, core.Permission(*permission))
	if err != nil {
		return err
	}
	numberChanges(ctx, db)
	fmt.Fprintf(i.Stdout, "user %d added: %s\n", user.ID, user.Email)
	return nil
}

// readPassword returns the first line of the input. At a terminal it asks for it twice, without echo.
func readPassword(ctx context.Context, input io.Reader) (string, error) {
	if file, ok := input.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return askPassword(ctx, file)
	}
	password, err := bufio.NewReader(input).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password from standard input: %w", err)
	}
	return strings.TrimRight(password, "\r\n"), nil
}

// askPassword asks for a password at a terminal until ctx ends. Questions go to the terminal, as the output may be
// a file.
func askPassword(ctx context.Context, terminal *os.File) (string, error) {
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	var answers [2]string
	for i, question := range []string{"Password: ", "The same again: "} {
		fmt.Fprint(terminal, question)
		read := make(chan error, 1)
		go func() {
			password, err := term.ReadPassword(int(terminal.Fd()))
			answers[i] = string(password)
			read <- err
		}()
		select {
		case err = <-read:
		case <-ctx.Done(): // Ctrl-C
			err = cmp.Or(term.Restore(int(terminal.Fd()), before), context.Cause(ctx))
		}
		fmt.Fprintln(terminal)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
	}
	if answers[0] != answers[1] {
		return "", errors.New("the two passwords differ; nothing was changed")
	}
	return answers[0], nil
}

// userPasswdConfig is the settings of core user passwd. It only needs to know whether there is
// a mail server: running cores send what the command adds to the outbox.
type userPasswdConfig struct {
	postgres.Config
	MailHost string `env:"SMTP_HOST"`
	Site     string `env:"SITE_NAME" envDefault:"Veneer"` // which no password may be
}

// userPasswdCommand sets a user's password. If the site sends e-mail, the user is notified.
func userPasswdCommand(ctx context.Context, i cli.Invocation) error {
	email, err := i.ParseArg(cli.Flags("core user passwd"), "EMAIL")
	if err != nil {
		return err
	}
	password, err := readPassword(ctx, i.Stdin)
	if err != nil {
		return err
	}
	cfg, err := config.Read[userPasswdConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	return withUser(ctx, cfg.Config, email, func(db *postgres.DB, user core.User) error {
		passwords := core.NewPasswords(cfg.Site)
		if err := passwords.Check("password", password, user.Email); err != nil {
			return err
		}
		if _, err := core.NewAccounts(db, nil, passwords, cfg.MailHost != "").ResetPassword(ctx, core.CLIActor, user.ID, password); err != nil {
			return err
		}
		fmt.Fprintf(i.Stdout, "user %d has a new password, and is signed out everywhere: %s\n", user.ID, user.Email)
		return nil
	})
}

// userPermissionCommand sets a user's permission.
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
	cfg, err := config.Read[postgres.Config](prefix, i.Environ)
	if err != nil {
		return err
	}
	return withUser(ctx, cfg, email, func(db *postgres.DB, user core.User) error {
		if _, err := core.NewAccounts(db, nil, nil, false).SetPermission(ctx, core.CLIActor, user.ID, core.PermissionChange{Permission: int64(*permission)}); err != nil {
			return err
		}
		fmt.Fprintf(i.Stdout, "user %d has permission %d: %s\n", user.ID, *permission, user.Email)
		return nil
	})
}

// withUser opens the database and calls do with the user with an e-mail address.
func withUser(ctx context.Context, cfg postgres.Config, email string, do func(*postgres.DB, core.User) error) error {
	db, err := openReady(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	user, err := core.NewUsers(db, nil, nil, core.ScorePrices{}, nil, false).ByEmail(ctx, email)
	if err != nil {
		return err
	}
	return do(db, user)
}

// openReady opens a database, which must be available and have its schema.
func openReady(ctx context.Context, cfg postgres.Config) (*postgres.DB, error) {
	db, err := postgres.Open(ctx, cfg)
	if err == nil {
		if err = db.Check(ctx); err == nil {
			return db, nil
		}
		db.Close()
	}
	return nil, config.In(prefix, err)
}

// numberChanges numbers the command's changes, so that running cores stream them to edges at
// once. Otherwise their next poll would do so; an error can therefore be ignored.
func numberChanges(ctx context.Context, db *postgres.DB) { _, _ = db.NumberChanges(ctx) }
