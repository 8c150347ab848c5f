// Package logging makes the logger that both programs write with.
package logging

import (
	"fmt"
	"io"
	"log/slog"
)

// Config says what is logged and how.
type Config struct {
	Level  slog.Level `env:"LEVEL" envDefault:"info" help:"least severity that is logged: debug, info, warn or error"`
	Format string     `env:"FORMAT" envDefault:"json" help:"form of a log line: json, or text for people"`
}

// New returns a logger that writes to w, a line an event.
func New(w io.Writer, config Config) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: config.Level}
	switch config.Format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("LOG_FORMAT is %q, but must be json or text", config.Format)
	}
}
