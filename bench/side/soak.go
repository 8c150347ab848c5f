package side

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/report"
)

const (
	// soakRate is how many requests a second a soak sends, of a mixed day: what one
	// processor does at ease.
	soakRate = 4000
	// soakLooks is how often the programs are looked at.
	soakLooks = 240
)

// Soak runs a mixed day at a constant rate for a time, and returns what core and the
// edge have in use meanwhile. All answers must be right. The date, the commit and the
// machine are the caller's to tell.
func Soak(ctx context.Context, options Options, duration time.Duration) (*report.Run, error) {
	s, err := openStage(options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.tags[s.town.Edge] = s.record.Tags()
	t, err := s.found()
	if err != nil {
		return nil, err
	}
	s.tell("requests a second", soakRate)

	programs := []struct{ name, operators string }{{"edge", s.town.Operators}, {"core", t.core.Address(s.TB, "operators")}}
	result := &report.Run{}
	for _, p := range programs {
		result.Soak = append(result.Soak, report.Series{Program: p.name})
	}
	var work errgroup.Group
	ended := make(chan struct{})
	work.Go(func() error {
		defer close(ended)
		got, err := s.mixedDay(ctx, t, s.town.Edge, soakRate, duration)
		if err != nil {
			return err
		}
		return got.Check()
	})
	work.Go(func() error {
		look := time.NewTicker(duration / soakLooks)
		defer look.Stop()
		for began := time.Now(); ; {
			select {
			case <-ended:
				return nil
			case <-look.C:
			}
			minutes := time.Since(began).Minutes()
			for i, p := range programs {
				usage, err := usageOf(ctx, p.operators)
				if err != nil {
					return fmt.Errorf("look at the %s: %w", p.name, err)
				}
				usage.Minutes = minutes
				result.Soak[i].Samples = append(result.Soak[i].Samples, usage)
			}
			fmt.Fprintf(s.Out, "\r==> soak … %.1f of %.0f minutes", minutes, duration.Minutes())
		}
	})
	err = work.Wait()
	fmt.Fprintln(s.Out)
	if err != nil {
		return nil, err
	}
	result.Programs, err = s.programs(ctx)
	result.Settings = s.settings
	return result, err
}

// usageOf reads what a program has in use from its metrics.
func usageOf(ctx context.Context, operators string) (usage report.Usage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operators+"/metrics", http.NoBody)
	if err != nil {
		return usage, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return usage, err
	}
	defer func() { _ = response.Body.Close() }()
	found := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue // a comment, or of more words
		}
		switch name {
		case "process_resident_memory_bytes":
			usage.Resident = int64(value)
		case "go_goroutines":
			usage.Goroutines = int(value)
		case "process_open_fds":
			usage.Files = int(value)
		case "veneer_edge_libvips_bytes":
			usage.Libvips = int64(value)
			continue // core has none
		default:
			continue
		}
		found++
	}
	if found != 3 {
		return usage, fmt.Errorf("its metrics lack %d of 3", 3-found)
	}
	return usage, nil
}
