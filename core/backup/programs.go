package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/veneer-skins/veneer/core/postgres"
)

// endTimeout is how long a program has to end after SIGTERM.
const endTimeout = 10 * time.Second

// run runs a program of PostgreSQL's client. An empty database is none.
func run(ctx context.Context, database string, in io.Reader, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, endTimeout
	var errorText bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &errorText
	if database != "" {
		address, environ, err := postgres.ClientAddress(database)
		if err != nil {
			return err
		}
		cmd.Args = append(cmd.Args, "--dbname="+address)
		cmd.Env = append(cmd.Environ(), environ...)
	}
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s is not installed; Debian has it in postgresql-client: %w", name, err)
	case err != nil:
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(errorText.String()))
	}
	return nil
}
