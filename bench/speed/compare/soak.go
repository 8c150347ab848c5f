package compare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
)

const (
	// soakRate is the rate of a soak's mixed day, in requests a second: easy for one processor.
	// With libvips as its encoder an edge answered a third of the new pictures at this rate
	// with 503.
	soakRate     = 4000
	soakRateSlow = 1500
	// soakSamples is the number of samples of the programs.
	soakSamples = 240
)

// Soak runs a mixed day at a constant rate for a duration, and returns the resource usage of core
// and the edge meanwhile. It begins when the edge's picture cache is full, as usage grows until
// then. All answers must be right, and no usage may grow in the second half; with that error it
// returns the run, too. The caller sets the date, the commit and the machine.
func Soak(ctx context.Context, options Options, duration time.Duration) (*results.Run, error) {
	s, err := newEnv(options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.openFixture(ctx); err != nil {
		return nil, err
	}
	s.tags[s.fixture.Edge] = s.record.Tags()
	t, err := s.openLive()
	if err != nil {
		return nil, err
	}
	rate := float64(soakRate)
	if s.Encoder != "" {
		rate = soakRateSlow
	}
	if s.Quick {
		rate /= 10
	}
	s.addSetting("requests a second", rate)
	if err := s.warmMappings(ctx); err != nil {
		return nil, err
	}
	if !s.Quick { // it would take minutes
		if err := s.fillEdge(ctx); err != nil {
			return nil, err
		}
	}

	programs := []struct{ name, operators string }{{"edge", s.fixture.Operators}, {"core", t.core.Address(s.TB, "operators")}}
	result := &results.Run{Variant: "soak", Quick: s.Quick}
	if s.Encoder != "" {
		result.Variant += "-" + s.Encoder
	}
	for _, p := range programs {
		result.Soak = append(result.Soak, results.Series{Program: p.name})
	}
	var work errgroup.Group
	ended := make(chan struct{})
	work.Go(func() error {
		defer close(ended)
		got, err := s.runDay(ctx, t, &dayServer{server: s.fixture.Edge}, rate, 0, duration)
		if err != nil {
			return err
		}
		return got.Check()
	})
	work.Go(func() error {
		ticker := time.NewTicker(duration / soakSamples)
		defer ticker.Stop()
		for began := time.Now(); ; {
			select {
			case <-ended:
				return nil
			case <-ticker.C:
			}
			minutes := time.Since(began).Minutes()
			for i, p := range programs {
				usage, err := usageOf(ctx, p.operators)
				if err != nil {
					return fmt.Errorf("sample the %s: %w", p.name, err)
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
	result.Settings = s.settings
	if s.Quick {
		return result, nil
	}
	return result, result.CheckFlat()
}

// fillEdge makes the edge render pictures that will not be requested again, the largest first,
// until it has to evict some.
func (e *env) fillEdge(ctx context.Context) error {
	unpin, err := load.Pin(e.loadCPU)
	if err != nil {
		return err
	}
	defer unpin()
	skins, renders := e.fixture.Skins(), 0
	stream := &load.Stream{Connections: coldConnections, Statuses: []int{fasthttp.StatusOK}, Requests: [][]byte{nil}}
	stream.Order = func() int {
		size := 512 - coldStep*(renders/len(skins))
		if size < coldStep {
			return -1
		}
		stream.Requests[0] = fmt.Appendf(nil, "GET /avatar/hash/%s?png&size=%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", skins[renders%len(skins)], size)
		renders++
		return 0
	}
	for {
		metrics, err := metricsOf(ctx, e.fixture.Operators)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.Out, "\r==> filling the edge's memory … %.0f of %.0f MiB",
			metrics["veneer_edge_picture_cache_bytes"]/(1<<20), metrics["veneer_edge_picture_cache_budget_bytes"]/(1<<20))
		if metrics["veneer_edge_picture_cache_evicted_total"] > 0 {
			fmt.Fprintln(e.Out)
			return nil
		}
		all, err := load.Run(ctx, e.fixture.Edge.Address, time.Second, stream)
		if err != nil {
			return err
		}
		if all[0].Total() == 0 {
			return errors.New("there are not enough pictures to fill the edge's memory")
		}
		if err := all[0].Check(); err != nil {
			return err
		}
	}
}

// usageOf reads a program's resource usage from its metrics.
func usageOf(ctx context.Context, operators string) (usage results.Usage, err error) {
	metrics, err := metricsOf(ctx, operators)
	if err != nil {
		return usage, err
	}
	const libvips = "veneer_edge_libvips_bytes"
	needed := []string{residentMetric, "go_goroutines", "process_open_fds"}
	if _, edge := metrics["veneer_edge_picture_cache_bytes"]; edge { // core has no libvips
		needed = append(needed, libvips)
	}
	for _, name := range needed {
		if _, ok := metrics[name]; !ok {
			return usage, fmt.Errorf("its metrics lack %s", name)
		}
	}
	return results.Usage{
		Resident: int64(metrics[residentMetric]), Goroutines: int(metrics["go_goroutines"]), Files: int(metrics["process_open_fds"]),
		Libvips: int64(metrics[libvips]),
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
