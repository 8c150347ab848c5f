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
	metrics, err := metricsOf(ctx, operators)
	if err != nil {
		return usage, err
	}
	for _, name := range []string{residentMetric, "go_goroutines", "process_open_fds"} {
		if _, ok := metrics[name]; !ok {
			return usage, fmt.Errorf("its metrics lack %s", name)
		}
	}
	return report.Usage{
		Resident: int64(metrics[residentMetric]), Goroutines: int(metrics["go_goroutines"]), Files: int(metrics["process_open_fds"]),
		Libvips: int64(metrics["veneer_edge_libvips_bytes"]), // core has none
	}, nil
}

const residentMetric = "process_resident_memory_bytes"

// metricsOf returns a program's metrics, by their names with all labels.
func metricsOf(ctx context.Context, operators string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operators+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	metrics := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		space := strings.LastIndexByte(line, ' ')
		if space < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[space+1:], 64); err == nil && !strings.HasPrefix(line, "#") {
			metrics[line[:space]] = value
		}
	}
	return metrics, lines.Err()
}
