package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// startPrometheus starts a Prometheus that monitors the cluster as docs/operations/machines.md
// does, with the addresses of this cluster and a shorter interval.
func (c *Cluster) startPrometheus(tb testing.TB) {
	tb.Helper()
	const interval = "2s"
	content, err := os.ReadFile(filepath.Join(c.options.RepoRoot, "deploy/machines/prometheus.yml"))
	if err != nil {
		tb.Fatal(err)
	}
	var config struct {
		Global  map[string]string `yaml:"global"`
		Rules   []string          `yaml:"rule_files"`
		Scrapes []object          `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		tb.Fatal(err)
	}
	for name := range config.Global {
		config.Global[name] = interval
	}
	for i, file := range []string{"monitoring/rules.yml", "machines/rules.yml"} {
		if config.Rules[i], err = filepath.Abs(filepath.Join(c.options.RepoRoot, "deploy", file)); err != nil {
			tb.Fatal(err)
		}
	}
	targets := c.scrapeTargets(tb)
	config.Scrapes = slices.DeleteFunc(config.Scrapes, func(scrape object) bool {
		name, _ := scrape["job_name"].(string)
		scrape["static_configs"] = []object{{"targets": targets[name]}}
		return len(targets[name]) == 0
	})

	p, address := c.newProgram(tb, "prometheus", c.options.Prometheus), stack.FreeAddress(tb)
	if content, err = yaml.Marshal(&config); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(p.directory, "prometheus.yml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	p.arguments = append(p.arguments, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(p.directory, "data"), "--web.listen-address="+address)
	p.Start(tb)
	c.Prometheus, c.prometheus = p, stack.Prometheus(address)
}

// scrapeTargets returns the metrics addresses of each job.
func (c *Cluster) scrapeTargets(tb testing.TB) map[string][]string {
	tb.Helper()
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
		p, address := c.newProgram(tb, "node-exporter", c.options.NodeExporter), stack.FreeAddress(tb)
		p.arguments = append(p.arguments, "--web.listen-address="+address)
		p.Start(tb)
		all["node"] = []string{address}
	}
	return all
}

// foreignMetric matches the names of metrics that are not Veneer's, with their exporter. Veneer's
// are tested elsewhere.
var foreignMetric = regexp.MustCompile(`\b(haproxy|etcd|patroni|minio|node)_\w+`)

// systemdPrefix begins the metrics of systemd's units, which do not exist where systemd does not
// run.
const systemdPrefix = "node_systemd_"

// CheckMonitored fails the test if a target has no metrics, an alert cannot be evaluated, or an
// alert queries a metric that no target has, which would never fire.
func (c *Cluster) CheckMonitored(tb testing.TB) {
	tb.Helper()
	targets, alerts := c.prometheus.AwaitHealthy(tb)
	jobs := map[string]bool{}
	for _, t := range targets {
		jobs[t.Labels["job"]] = true
		if t.Health != "up" {
			tb.Errorf("Prometheus cannot scrape %v: %s", t.Labels, t.LastError)
		}
	}
	checked := 0
	for _, a := range alerts {
		if a.Health != "ok" {
			tb.Errorf("Prometheus cannot evaluate %s: %s", a.Name, a.LastError)
		}
		for _, named := range foreignMetric.FindAllStringSubmatch(a.Query, -1) {
			if !jobs[named[1]] || strings.HasPrefix(named[0], systemdPrefix) {
				continue
			}
			if checked++; !c.prometheus.HasMetric(tb, named[0]) {
				tb.Errorf("%s queries %s, which no target has", a.Name, named[0])
			}
		}
	}
	if checked == 0 {
		tb.Error("no alert queries a metric of a third-party program")
	}
}
