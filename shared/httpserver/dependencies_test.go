package httpserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A final error of a setting stops a program, and any other error does not.
func TestCheckDependenciesReturnsFinalError(t *testing.T) {
	t.Parallel()
	check := func(name string, err error) httpserver.Check {
		return httpserver.Check{Name: name, Probe: func(context.Context) error { return err }}
	}
	wrong := config.Finalf("X_URL", "is wrong")
	f := func(want error, checks ...httpserver.Check) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		testenv.Is(t, httpserver.CheckDependencies(ctx, silent(), checks...), want, "CheckDependencies")
	}
	f(nil)
	f(nil, check("up", nil), check("down", errors.New("down")))
	f(wrong, check("down", errors.New("down")), check("wrong", fmt.Errorf("more: %w", wrong)))
}

// syncBuffer is a buffer that may be read while it is written.
type syncBuffer struct {
	mu      sync.Mutex
	written strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}

// An unavailable dependency is logged at once and each minute, until it is available.
func TestCheckDependenciesLogsEachMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		began := time.Now()
		probe := func(ctx context.Context) error {
			switch after := time.Since(began); {
			case after < 30*time.Second:
				return errors.New("down")
			case after < 150*time.Second: // it hangs, and each probe ends at its deadline
				<-ctx.Done()
				return ctx.Err()
			default:
				return nil
			}
		}
		testenv.Do(t, httpserver.CheckDependencies(t.Context(), log, httpserver.Check{Name: "database", Probe: probe}))
		const down, hangs = "level=WARN msg=\"dependency is not available\" dependency=database error=down\n",
			"level=WARN msg=\"dependency is not available\" dependency=database error=\"context deadline exceeded\"\n"
		f := func(moment time.Duration, want string) {
			t.Helper()
			<-time.After(moment - time.Since(began))
			synctest.Wait()
			testenv.Check(t, out.String() == want, "after %s the log is\n%swant\n%s", moment, out.String(), want)
		}
		f(0, down)
		f(59*time.Second, down)
		f(65*time.Second, down+hangs)
		f(119*time.Second, down+hangs)
		f(127*time.Second, down+hangs+hangs)
		f(160*time.Second, down+hangs+hangs+"level=INFO msg=\"dependency is available\" dependency=database\n")
		f(time.Hour, down+hangs+hangs+"level=INFO msg=\"dependency is available\" dependency=database\n")
	})
}
