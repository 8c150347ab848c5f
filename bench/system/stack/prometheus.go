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

// Prometheus is a Prometheus that runs, by its address.
type Prometheus string

// Target is a program that a Prometheus watches.
type Target struct {
	Labels    map[string]string
	Health    string // "up" if its metrics were read
	LastError string
}

// Alert is a rule of a Prometheus.
type Alert struct {
	Name, Query string
	Health      string // "ok" if it could be evaluated
	LastError   string
}

// AwaitHealthy waits for a minute at most until all that the Prometheus watches is up and it can
// evaluate all alerts, and returns both as they are then. It asks again what has not answered
// in time.
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

// state returns what there is to be watched, and by which rules.
func (p Prometheus) state(tb testing.TB) (targets []Target, alerts []Alert, err error) {
	tb.Helper()
	var watched struct{ ActiveTargets []Target }
	var rules struct {
		Groups []struct{ Rules []Alert }
	}
	if err := errors.Join(p.query(tb, "targets", &watched), p.query(tb, "rules", &rules)); err != nil {
		return nil, nil, err
	}
	for _, group := range rules.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return watched.ActiveTargets, alerts, nil
}

// HasMetric reports whether it knows of a metric.
func (p Prometheus) HasMetric(tb testing.TB, metric string) bool {
	tb.Helper()
	var series []map[string]string
	if err := p.query(tb, "series?match[]="+url.QueryEscape(metric), &series); err != nil {
		tb.Fatal(err)
	}
	return len(series) > 0
}

// query decodes what it answers to a question of its CoreURL.
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
