// Package logging makes the logger of both programs.
package logging

import (
	"io"
	"log/slog"
)

// Config configures the logger.
type Config struct {
	Level  slog.Level `env:"LEVEL" envDefault:"info" help:"minimum severity that is logged: debug, info, warn or error"`
	Format string     `env:"FORMAT" envDefault:"json" oneof:"json,text" help:"format of a log line: json, or text for people"`
	// SampleRate is applied by the servers; the logger drops nothing.
	SampleRate float64 `env:"SAMPLE_RATE" envDefault:"0.01" min:"0" max:"1" help:"share of requests that are logged, from 0 to 1; those that fail on the server's side always are, but of those answered with 503 only 100 a second"`
}

// New returns a logger that writes one line per event to w.
func New(w io.Writer, config Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.Level}
	if config.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
