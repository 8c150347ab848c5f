package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// startPrometheus starts a Prometheus that monitors the cluster as docs/operations/machines.md
// does, with the addresses of this cluster and a shorter interval.
func (c *Cluster) startPrometheus() {
	deploy := testenv.Must(filepath.Abs(filepath.Join(c.options.RepoRoot, "deploy")))(c)
	var jobs strings.Builder
	targets := c.scrapeTargets()
	_, deployed, _ := strings.Cut(read(c, c.options.RepoRoot, "deploy/machines/prometheus.yml"), "\nscrape_configs:")
	for job := range strings.SplitSeq(deployed, "\n  - job_name: ") {
		name, settings, _ := strings.Cut(job, "\n")
		settings, _, _ = strings.Cut(settings, "    static_configs:")
		if addresses := targets[name]; len(addresses) > 0 {
			fmt.Fprintf(&jobs, "\n  - job_name: %s\n%s    static_configs: [{targets: [\"%s\"]}]", name, settings, strings.Join(addresses, `", "`))
		}
	}
	config := AdaptConfig(c, c.options.RepoRoot, "machines/prometheus.yml", map[string]string{
		`(?m)^(  \w+_interval: .*\n)+`: "  scrape_interval: 2s\n  evaluation_interval: 2s\n",
		`(?m)^rule_files: .*$`:         fmt.Sprintf("rule_files: [%q, %q]", deploy+"/monitoring/rules.yml", deploy+"/machines/rules.yml"),
		`(?m)^alerting:\n(  .*\n)+`:    "",
		`(?s)\nscrape_configs:.*`:      "\nscrape_configs:" + jobs.String() + "\n",
	})

	p, address := c.newProgram("prometheus", c.options.Prometheus), FreeAddress(c)
	path := WriteFile(c, p.directory, "prometheus.yml", config)
	p.command = append(p.command, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(p.directory, "data"), "--web.listen-address="+address)
	p.Start(c)
	c.Prometheus, c.prometheus = p, Prometheus(address)
}

// scrapeTargets returns the metrics addresses of each job.
func (c *Cluster) scrapeTargets() map[string][]string {
	all := map[string][]string{"haproxy": {c.stats}, "etcd": c.etcdOps, "minio": c.stores}
	for _, p := range c.Cores {
		all["veneer-core"] = append(all["veneer-core"], p.Setting("CORE_OPS_LISTEN"))
	}
	for _, p := range c.Edges {
		all["veneer-edge"] = append(all["veneer-edge"], p.Setting("EDGE_OPS_LISTEN"))
	}
	for _, n := range c.Nodes {
		all["patroni"] = append(all["patroni"], n.patroniAddress)
	}
	if c.options.NodeExporter != "" {
		p, address := c.newProgram("node-exporter", c.options.NodeExporter), FreeAddress(c)
		p.command = append(p.command, "--web.listen-address="+address)
		p.Start(c)
		all["node"] = []string{address}
	}
	return all
}

// foreignMetric matches the names of metrics that are not Veneer's, with their exporter. Veneer's
// are tested elsewhere.
var foreignMetric = regexp.MustCompile(`\b(haproxy|etcd|patroni|minio|node)_\w+`)

// CheckMonitored fails the test if a target has no metrics, an alert cannot be evaluated, or an
// alert queries a metric that no target has, which would never fire.
func (c *Cluster) CheckMonitored() {
	jobs, alerts := c.prometheus.AwaitHealthy(c)
	checked := 0
	for _, a := range alerts {
		for _, named := range foreignMetric.FindAllStringSubmatch(a.Query, -1) {
			if !jobs[named[1]] || strings.HasPrefix(named[0], "node_systemd_") {
				continue // the metrics of systemd's units do not exist where it does not run
			}
			var series []map[string]string
			testenv.Do(c, c.prometheus.query(c, "series?match[]="+url.QueryEscape(named[0]), &series))
			if checked++; len(series) == 0 {
				c.Errorf("%s queries %s, which no target has", a.Name, named[0])
			}
		}
	}
	if checked == 0 {
		c.Error("no alert queries a metric of a third-party program")
	}
}

// Prometheus is the address of a running Prometheus.
type Prometheus string

// Alert is an alerting rule.
type Alert struct{ Name, Query, Health, LastError string }

// AwaitHealthy waits until all targets are up and all alerts can be evaluated, and
// returns the jobs of the targets, and the alerts. Else the test fails. It retries API requests that fail.
func (p Prometheus) AwaitHealthy(tb testing.TB) (jobs map[string]bool, alerts []Alert) {
	tb.Helper()
	var err error
	poll(tb, 100*time.Millisecond, func() bool {
		jobs, alerts, err = p.state(tb)
		return err == nil
	}, func() { tb.Fatalf("after %s Prometheus does not watch everything: %v", awaitTimeout, err) })
	return jobs, alerts
}

// state returns the jobs of the targets, and the rules. The error names those that do not work.
func (p Prometheus) state(tb testing.TB) (jobs map[string]bool, alerts []Alert, err error) {
	tb.Helper()
	var targets struct {
		ActiveTargets []struct {
			Labels            map[string]string
			Health, LastError string
		}
	}
	var rules struct{ Groups []struct{ Rules []Alert } }
	if err := errors.Join(p.query(tb, "targets", &targets), p.query(tb, "rules", &rules)); err != nil {
		return nil, nil, err
	}
	var bad []error
	jobs = map[string]bool{}
	for _, t := range targets.ActiveTargets {
		jobs[t.Labels["job"]] = true
		if t.Health != "up" {
			bad = append(bad, fmt.Errorf("it cannot scrape %v: %s", t.Labels, t.LastError))
		}
	}
	for _, group := range rules.Groups {
		alerts = append(alerts, group.Rules...)
	}
	for _, a := range alerts {
		if a.Health != "ok" {
			bad = append(bad, fmt.Errorf("it cannot evaluate %s: %s", a.Name, a.LastError))
		}
	}
	if len(jobs) == 0 || len(alerts) == 0 {
		bad = append(bad, fmt.Errorf("it has the jobs %v and %d alerts", jobs, len(alerts)))
	}
	return jobs, alerts, errors.Join(bad...)
}

// query decodes the response to a request of the HTTP API.
func (p Prometheus) query(tb testing.TB, what string, into any) error {
	tb.Helper()
	status, body := ask(tb, http.DefaultClient, http.MethodGet, "http://"+string(p)+"/api/v1/"+what)
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("Prometheus answers %d to %s: %w", status, what, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("Prometheus on %s: %s", what, answer.Error)
	}
	return nil
}
