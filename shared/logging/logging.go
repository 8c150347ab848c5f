// Package logging makes the logger of both programs.
package logging

import (
	"fmt"
	"io"
	"log/slog"
)

// Config configures the logger.
type Config struct {
	Level  slog.Level `env:"LEVEL" envDefault:"info" help:"minimum severity that is logged: debug, info, warn or error"`
	Format string     `env:"FORMAT" envDefault:"json" help:"format of a log line: json, or text for people"`
	// SampleRate is applied by the servers; the logger drops nothing.
	SampleRate float64 `env:"SAMPLE_RATE" envDefault:"0.01" help:"share of requests that are logged, from 0 to 1; those that fail on the server's side always are, but of those answered with 503 only 100 a second"`
}

// New returns a logger that writes one line per event to w.
func New(w io.Writer, config Config) (*slog.Logger, error) {
	if ok := 0 <= config.SampleRate && config.SampleRate <= 1; !ok {
		return nil, fmt.Errorf("LOG_SAMPLE_RATE is %v, but must be from 0 to 1", config.SampleRate)
	}
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
