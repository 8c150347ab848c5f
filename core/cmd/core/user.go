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
	"github.com/veneer-skins/veneer/shared/settings"
)

// userAddCommand adds a user without asking them.
func userAddCommand(ctx context.Context, p program) error {
	flags := newFlags("user add")
	nickname := flags.String("nickname", "", "display name; the e-mail's local part if not given")
	player := flags.String("player", "", "name of a first player")
	permission := flags.Int("permission", int(core.Normal), "0 normal, 1 administrator, 2 super administrator")
	verified := flags.Bool("verified", true, "whether the e-mail address counts as verified")
	email, err := operand(p, flags, "EMAIL")
	if err != nil {
		return err
	}
	if *permission < int(core.Normal) || *permission > int(core.SuperAdministrator) {
		return fmt.Errorf("-permission is %d, but must be 0, 1 or 2", *permission)
	}
	if *nickname == "" {
		*nickname, _, _ = strings.Cut(email, "@")
	}
	config, err := settings.Read[struct {
		postgres.Config
		Players core.PlayerLimits `envPrefix:"PLAYER_"`
	}](prefix, p.environ)
	if err != nil {
		return err
	}
	names, err := core.NewPlayerNames(config.Players)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	password, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password from standard input: %w", err)
	}

	db, err := postgres.Open(ctx, config.Config)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	defer db.Close()
	user, err := core.NewUsers(db, core.NewPasswords(), names).Register(ctx, core.Registration{
		Email: email, Password: strings.TrimRight(password, "\r\n"), Nickname: *nickname, PlayerName: *player,
		Permission: core.Permission(*permission), Verified: *verified,
	})
	if err != nil {
		return err
	}
	tellEdges(ctx, db)
	fmt.Fprintf(p.stdout, "user %d added: %s\n", user.ID, user.Email)
	return nil
}

// tellEdges has the running cores stream what was changed at once. Without it
// their next poll would find it, so a failure is none of the user's concern.
func tellEdges(ctx context.Context, db *postgres.DB) { _, _ = db.NumberChanges(ctx) }

// newFlags returns the flags of a subcommand, which say nothing by themselves.
func newFlags(command string) *flag.FlagSet {
	flags := flag.NewFlagSet("core "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse parses the flags of a subcommand with an operand, or with none. It
// returns flag.ErrHelp when it was asked for help and has given it.
func parse(p program, flags *flag.FlagSet, operand string) error {
	err := flags.Parse(p.args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(p.stdout, strings.TrimSpace(flags.Name()+" [flags] "+operand))
		flags.SetOutput(p.stdout)
		flags.PrintDefaults()
	}
	if err == nil && operand == "" && flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument, but was given %q", flags.Name(), flags.Arg(0))
	}
	return err
}

// operand parses flags and returns the one argument that follows them.
func operand(p program, flags *flag.FlagSet, name string) (string, error) {
	if err := parse(p, flags, name); err != nil {
		return "", err
	}
	if flags.NArg() != 1 {
		return "", fmt.Errorf("give exactly one %s, after the flags: %s [flags] %s", name, flags.Name(), name)
	}
	return flags.Arg(0), nil
}
