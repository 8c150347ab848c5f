package containers

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/shared/objects/objectstest"
)

// prometheus is one that runs.
type prometheus struct{ url string }

func (p prometheus) isReady(t *testing.T) bool {
	t.Helper()
	return send(t, http.MethodGet, p.url+"/-/ready", nil) == http.StatusOK
}

// get returns what it answers to a question of its API.
func get[T any](t *testing.T, p prometheus, what string) (data T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/v1/"+what, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status string
		Data   T
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %q, %v", what, answer.Status, err)
	}
	return answer.Data
}

// until asks again and again, until what is answered will do.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("a minute has passed without this: %s", what)
		}
	}
}

// Prometheus as docker-compose.yml has it watches real programs: it understands all that
// they say, and can evaluate every alert.
func TestPrometheusWatches(t *testing.T) {
	t.Parallel()
	installed(t, "prometheus")
	content, err := os.ReadFile(filepath.Join(top, "deploy/compose/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	watched := system.Start(t, objectstest.Directory(t).Config)

	work := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(top, "deploy/monitoring/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := replaced(t, string(content), "scrape_interval: 15s", "scrape_interval: 200ms")
	config = replaced(t, config, "evaluation_interval: 15s", "evaluation_interval: 200ms")
	config = replaced(t, config, "[rules.yml]", "["+rules+"]")
	config = replaced(t, config, "core:9080", watched.Core.Address(t, "operators"))
	config = replaced(t, config, `"edge-1:9081", "edge-2:9081"`, `"`+watched.Edge.Address(t, "operators")+`"`)
	address := system.FreeAddress(t)
	run(t, address, work, nil, "prometheus", "--config.file="+written(t, work, config),
		"--storage.tsdb.path="+filepath.Join(work, "data"), "--web.listen-address="+address)
	p := prometheus{"http://" + address}
	until(t, "it is ready", func() bool { return p.isReady(t) })

	type target struct {
		Health, LastError string
		Labels            map[string]string
	}
	targets := func() []target {
		return get[struct{ ActiveTargets []target }](t, p, "targets").ActiveTargets
	}
	until(t, "it has asked both programs", func() bool {
		all := targets()
		return len(all) == 2 && !slices.ContainsFunc(all, func(of target) bool { return of.Health == "unknown" })
	})
	got := map[string]string{}
	for _, of := range targets() {
		got[of.Labels["job"]] = of.Health + of.LastError
	}
	if diff := cmp.Diff(map[string]string{"veneer-core": "up", "veneer-edge": "up"}, got); diff != "" {
		t.Errorf("programs that are watched (-want +got):\n%s", diff)
	}

	type rule struct{ Name, Health, LastError string }
	alerts := func() (all []rule) {
		for _, group := range get[struct {
			Groups []struct{ Rules []rule }
		}](t, p, "rules").Groups {
			all = append(all, group.Rules...)
		}
		return all
	}
	until(t, "it has evaluated all alerts", func() bool {
		all := alerts()
		return len(all) > 0 && !slices.ContainsFunc(all, func(alert rule) bool { return alert.Health == "unknown" })
	})
	for _, alert := range alerts() {
		if alert.Health != "ok" {
			t.Errorf("%s cannot be evaluated: %s", alert.Name, alert.LastError)
		}
	}
}
