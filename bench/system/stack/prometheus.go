package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

// Prometheus is the address of a running Prometheus.
type Prometheus string

// Target is a scrape target.
type Target struct {
	Labels    map[string]string
	Health    string // "up" if its metrics were read
	LastError string
}

// Alert is an alerting rule.
type Alert struct {
	Name, Query string
	Health      string // "ok" if it could be evaluated
	LastError   string
}

// AwaitHealthy waits for up to a minute until all targets are up and all alerts can be evaluated,
// and returns both. It retries API requests that fail.
func (p Prometheus) AwaitHealthy(tb testing.TB) (targets []Target, alerts []Alert) {
	tb.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		var err error
		if targets, alerts, err = p.state(tb); !slices.ContainsFunc(targets, func(t Target) bool { return t.Health != "up" }) &&
			!slices.ContainsFunc(alerts, func(a Alert) bool { return a.Health != "ok" }) && len(targets) > 0 && len(alerts) > 0 {
			return targets, alerts
		}
		select {
		case <-tick.C:
		case <-deadline:
			if len(targets) == 0 || len(alerts) == 0 {
				tb.Fatalf("in a minute Prometheus has not looked at everything: %+v, %+v, %v", targets, alerts, err)
			}
			return targets, alerts
		}
	}
}

// state returns the targets and the rules.
func (p Prometheus) state(tb testing.TB) (targets []Target, alerts []Alert, err error) {
	tb.Helper()
	var response struct{ ActiveTargets []Target }
	var rules struct {
		Groups []struct{ Rules []Alert }
	}
	if err := errors.Join(p.query(tb, "targets", &response), p.query(tb, "rules", &rules)); err != nil {
		return nil, nil, err
	}
	for _, group := range rules.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return response.ActiveTargets, alerts, nil
}

// HasMetric reports whether there are series of a metric.
func (p Prometheus) HasMetric(tb testing.TB, metric string) bool {
	tb.Helper()
	var series []map[string]string
	if err := p.query(tb, "series?match[]="+url.QueryEscape(metric), &series); err != nil {
		tb.Fatal(err)
	}
	return len(series) > 0
}

// query decodes the response to a request of the HTTP API.
func (p Prometheus) query(tb testing.TB, what string, into any) error {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+string(p)+"/api/v1/"+what, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("Prometheus answers %s to %s: %w", response.Status, what, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("Prometheus on %s: %s", what, answer.Error)
	}
	return nil
}
