package cluster

import (
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
)

// startBalancer starts haproxy as docs/operations/machines.md does, with the addresses of this
// cluster.
func (c *Cluster) startBalancer(tb testing.TB) {
	tb.Helper()
	var cores, edges, forEdges, stores, nodes strings.Builder
	server := func(to *strings.Builder, name string, i int, address, checked string) {
		fmt.Fprintf(to, "  server %s-%d %s check port %s\n", name, i+1, address, port(checked))
	}
	for i, p := range c.Cores {
		server(&cores, "core", i, p.Setting("CORE_LISTEN"), p.Setting("CORE_OPS_LISTEN"))
		server(&forEdges, "core", i, p.Setting("CORE_EDGES_LISTEN"), p.Setting("CORE_OPS_LISTEN"))
	}
	for i, p := range c.Edges {
		server(&edges, "edge", i, p.Setting("EDGE_LISTEN"), p.Setting("EDGE_OPS_LISTEN"))
	}
	for i, address := range c.stores {
		server(&stores, "minio", i, address, address)
	}
	for i, n := range c.Nodes {
		server(&nodes, "postgres", i, n.Address, n.patroniAddress)
	}
	bound := c.addressBound(tb)
	config := c.adaptConfig(tb, "compose/haproxy.cfg", map[string]string{
		`(?m)^  bind :8080$`:                   "  bind " + c.Address + "\n" + bound,
		`(?m)^  server core .*\n`:              cores.String(),
		`(?m)(^  server edge-\d .*\n)+`:        edges.String(),
		` resolvers containers init-addr .*\n`: "\n",
	}) + "\n" + c.adaptConfig(tb, "machines/haproxy.cfg", map[string]string{
		`(?m)^  bind :8404$`:                "  bind " + c.stats,
		`(?m)^  bind .*:9090$`:              "  bind " + c.cores,
		`(?m)^  bind .*:9000$`:              "  bind " + c.store,
		`(?m)^  bind .*:5432$`:              "  bind " + c.database,
		`(?m)(^  server core-\d .*\n)+`:     forEdges.String(),
		`(?m)(^  server minio-\d .*\n)+`:    stores.String(),
		`(?m)(^  server postgres-\d .*\n)+`: nodes.String(),
	}) + "\nfrontend edges-alone\n  bind " + c.EdgesAddress + "\n" + bound + "\n  option forwardfor\n  default_backend edges-alone" +
		"\nbackend edges-alone\n  balance leastconn\n  timeout server 12s\n" + edges.String()

	p := c.newProgram(tb, "haproxy", "haproxy")
	path := filepath.Join(p.directory, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	p.environ = []string{baseline.UnboundedLoad}
	p.arguments = append(p.arguments, "-W", "-db", "-f", path)
	p.Start(tb)
	p.await(tb, "listens", func() bool {
		conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", c.Address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	c.balancer = p
	c.Balancer = p
}

var addressLines = regexp.MustCompile(`(?s)  stick-table .* gt 256 \}`)

// addressBound returns the lines of deploy/machines/haproxy.sed that limit the connections of an
// address. The benchmarks' load comes from 127.0.0.1, which is exempt as the comment there exempts
// a CDN.
func (c *Cluster) addressBound(tb testing.TB) string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(c.options.RepoRoot, "deploy/machines/haproxy.sed"))
	if err != nil {
		tb.Fatal(err)
	}
	lines := addressLines.FindString(string(content))
	if lines == "" {
		tb.Fatal("deploy/machines/haproxy.sed bounds no connections of an address")
	}
	return strings.ReplaceAll(lines, "\\\n", "\n") + " !{ src 127.0.0.1 }"
}

// Reload has haproxy reload its configuration: a new process takes over, and the old one exits when
// its requests are done.
func (c *Cluster) Reload(tb testing.TB) {
	tb.Helper()
	if err := c.balancer.command.Process.Signal(syscall.SIGUSR2); err != nil {
		tb.Fatal(err)
	}
}

// adaptConfig returns a file of deploy with each pattern replaced, which must match once.
func (c *Cluster) adaptConfig(tb testing.TB, name string, changes map[string]string) string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(c.options.RepoRoot, "deploy", name))
	if err != nil {
		tb.Fatal(err)
	}
	config := string(content)
	for pattern, with := range changes {
		expression := regexp.MustCompile(pattern)
		if len(expression.FindAllString(config, -1)) != 1 {
			tb.Fatalf("deploy/%s has nothing, or several, like %s", name, pattern)
		}
		config = expression.ReplaceAllLiteralString(config, with)
	}
	return config
}

// balancerHealthy reports whether haproxy considers every server up, except that only one database
// node is (the primary).
func (c *Cluster) balancerHealthy(tb testing.TB) bool {
	tb.Helper()
	up := 0
	for _, row := range c.balancerStats() {
		if name := row["svname"]; name != "FRONTEND" && name != "BACKEND" && strings.HasPrefix(row["status"], "UP") {
			up++
		}
	}
	return up == 2*len(c.Cores)+2*len(c.Edges)+len(c.stores)+min(1, len(c.Nodes))
}

// RejectedConnections returns the number of connections that haproxy has closed because of the
// limit of an address.
func (c *Cluster) RejectedConnections(tb testing.TB) (n int) {
	tb.Helper()
	for _, row := range c.balancerStats() {
		if row["svname"] == "FRONTEND" {
			rejected, err := strconv.Atoi(row["dcon"])
			if err != nil {
				tb.Fatalf("refused connections of %s: %v", row["pxname"], err)
			}
			n += rejected
		}
	}
	return n
}

// balancerStats returns haproxy's statistics: a row for each frontend, backend and server, with the
// values by column. It returns none if haproxy does not respond.
func (c *Cluster) balancerStats() (stats []map[string]string) {
	response, err := c.client.Get("http://" + c.stats + "/;csv") //nolint:noctx // the client has a timeout
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil
	}
	for _, row := range rows[1:] {
		state := map[string]string{}
		for i, name := range rows[0] {
			state[strings.TrimPrefix(name, "# ")] = row[i]
		}
		stats = append(stats, state)
	}
	return stats
}
