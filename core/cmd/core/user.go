package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/command"
	"github.com/veneer-skins/veneer/shared/settings"
)

// userAddCommand adds a user without asking them.
func userAddCommand(ctx context.Context, i command.Invocation) error {
	flags := command.Flags("core user add")
	nickname := flags.String("nickname", "", "display name; the e-mail's local part if not given")
	player := flags.String("player", "", "name of a first player")
	permission := flags.Int("permission", int(core.Normal), "0 normal, 1 administrator, 2 super administrator")
	verified := flags.Bool("verified", true, "whether the e-mail address counts as verified")
	email, err := i.Operand(flags, "EMAIL")
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
	}](prefix, i.Environ)
	if err != nil {
		return err
	}
	names, err := core.NewPlayerNames(config.Players)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	password, err := bufio.NewReader(i.Stdin).ReadString('\n')
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
	fmt.Fprintf(i.Stdout, "user %d added: %s\n", user.ID, user.Email)
	return nil
}

// tellEdges has the running cores stream what was changed at once. Without it
// their next poll would find it, so a failure is none of the user's concern.
func tellEdges(ctx context.Context, db *postgres.DB) { _, _ = db.NumberChanges(ctx) }
