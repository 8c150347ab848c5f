package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

// maxInput bounds the bytes that are read of a notification's content. Its length is validated
// by core.Notifications.
const maxInput = 1 << 20

// notifyCommand sends a notification to one user or to all.
func notifyCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core notify")
	email := flags.String("user", "", "e-mail address of the user it is for")
	all := flags.Bool("all", false, "send it to all users")
	title, err := i.ParseArg(flags, "TITLE")
	if err != nil {
		return err
	}
	if *all == (*email != "") {
		return errors.New("give either -user or -all")
	}
	if !*all && !strings.Contains(*email, "@") {
		return fmt.Errorf("-user is %q, but must be an e-mail address", *email)
	}
	content, err := io.ReadAll(io.LimitReader(i.Stdin, maxInput))
	if err != nil {
		return fmt.Errorf("read the content from standard input: %w", err)
	}
	cfg, err := config.Read[postgres.Config](prefix, i.Environ)
	if err != nil {
		return err
	}

	db, err := openReady(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	to := *email
	if *all {
		to = "all"
	}
	count, err := core.NewNotifications(db, 0, time.Now).Announce(ctx, core.CLIActor, to, title, string(content))
	if err != nil {
		return err
	}
	fmt.Fprintf(i.Stdout, "users notified: %d\n", count)
	return nil
}
