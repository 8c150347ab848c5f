package deploytest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// Prometheus with the configuration of docker-compose.yml scrapes real programs and can evaluate
// every alert.
func TestPrometheusScrapes(t *testing.T) {
	t.Parallel()
	requireProgram(t, "prometheus")
	content, err := os.ReadFile(filepath.Join(top, "deploy/compose/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	system := stack.Start(t, blobstoretest.Directory(t).Config)

	work := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(top, "deploy/monitoring/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := replaceOnce(t, string(content), "scrape_interval: 15s", "scrape_interval: 200ms")
	config = replaceOnce(t, config, "evaluation_interval: 15s", "evaluation_interval: 200ms")
	config = replaceOnce(t, config, "[rules.yml]", "["+rules+"]")
	config = replaceOnce(t, config, "core:9080", system.Core.Address(t, "operators"))
	config = replaceOnce(t, config, `"edge-1:9081", "edge-2:9081"`, `"`+system.Edge.Address(t, "operators")+`"`)
	address := stack.FreeAddress(t)
	runServer(t, address, work, nil, "prometheus", "--config.file="+writeConfig(t, work, config),
		"--storage.tsdb.path="+filepath.Join(work, "data"), "--web.listen-address="+address)
	targets, alerts := stack.Prometheus(address).AwaitHealthy(t)
	got := map[string]string{}
	for _, of := range targets {
		got[of.Labels["job"]] = of.Health + of.LastError
	}
	if diff := cmp.Diff(map[string]string{"veneer-core": "up", "veneer-edge": "up"}, got); diff != "" {
		t.Errorf("programs that are watched (-want +got):\n%s", diff)
	}
	for _, alert := range alerts {
		if alert.Health != "ok" {
			t.Errorf("%s cannot be evaluated: %s", alert.Name, alert.LastError)
		}
	}
}
