// Package vips reduces pictures to exact sizes with libvips. All cgo of edge is here and in libwebp
// below.
//
// Each picture is a few calls into libvips. Its caches are off and it uses one thread, because the
// renderer reduces several pictures concurrently already.
package vips

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	govips "github.com/davidbyttow/govips/v2/vips"
)

// refs counts the Reducers that are not closed. libvips is shared by all of them, and cannot start again
// in a process that has stopped it.
var refs struct {
	sync.Mutex
	count int
}

// start starts libvips if it does not run.
func start(log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	refs.Lock()
	defer refs.Unlock()
	if refs.count > 0 {
		refs.count++
		return nil
	}
	govips.LoggingSettings(func(domain string, level govips.LogLevel, text string) {
		if level <= govips.LogLevelCritical {
			log.Error("libvips error", "domain", domain, "text", text)
		} else {
			log.Warn("libvips warning", "domain", domain, "text", text)
		}
	}, govips.LogLevelWarning)
	// No caches, because no operation is repeated with the same input.
	if err := govips.Startup(&govips.Config{ConcurrencyLevel: 1}); err != nil {
		return fmt.Errorf("start libvips: %w", firstLine(err))
	}
	refs.count++
	return nil
}

// stop stops libvips if nothing else uses it.
func stop() {
	refs.Lock()
	defer refs.Unlock()
	if refs.count--; refs.count == 0 {
		govips.Shutdown()
	}
}

// Memory returns how many bytes libvips uses for pixels, and the peak of that. Both are 0 before
// StartReducer.
func Memory() (bytes, peak int64) {
	refs.Lock()
	defer refs.Unlock()
	if refs.count == 0 {
		return 0, 0
	}
	var stats govips.MemoryStats
	govips.ReadVipsMemStats(&stats)
	return stats.Mem, stats.MemHigh
}

// firstLine returns the first line of a govips error. The rest is a stack trace; and as libvips has
// one error buffer for the whole process, further lines may belong to another picture.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if line = strings.TrimSpace(line); line == "" {
		line = "libvips gives no reason"
	}
	return errors.New(line)
}
