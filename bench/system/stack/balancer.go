package stack

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// UnboundedLoad is in the environment of a haproxy with Veneer's configuration, which otherwise
// limits the load's address to 256 open requests.
const UnboundedLoad = "VENEER_TRUSTED_PROXIES=127.0.0.1"

// startBalancer starts haproxy as docs/operations/machines.md does, with the addresses of this
// cluster.
func (c *Cluster) startBalancer() {
	var cores, edges, forEdges, stores, nodes strings.Builder
	server := func(to *strings.Builder, name string, i int, address, checked string) {
		_, port := HostPort(checked)
		fmt.Fprintf(to, "  server %s-%d %s check port %s\n", name, i+1, address, port)
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
	bound := regexp.MustCompile(`(?s)  stick-table .* gt 256 \}`).FindString(read(c, c.options.RepoRoot, "deploy/machines/haproxy.sed"))
	if bound == "" {
		c.Fatal("deploy/machines/haproxy.sed bounds no connections of an address")
	}
	// The benchmarks' load comes from 127.0.0.1, which is exempt as the comment there exempts a CDN.
	bound = strings.ReplaceAll(bound, "\\\n", "\n") + " !{ src 127.0.0.1 }"
	config := ComposeHaproxy(c, c.options.RepoRoot, c.Address+"\n"+bound, cores.String(), edges.String()) +
		"\nlisten" + AdaptConfig(c, c.options.RepoRoot, "compose/haproxy.cfg", map[string]string{
		`(?s)^.*\nlisten`: "", `  bind :9090`: "  bind " + c.cores, `  server-template .*\n$`: forEdges.String(),
	}) + "\n" + AdaptConfig(c, c.options.RepoRoot, "machines/haproxy.cfg", map[string]string{
		`(?m)^  bind :8404$`:                "  bind " + c.stats,
		`(?m)^  bind .*:9000$`:              "  bind " + c.store,
		`(?m)^  bind .*:5432$`:              "  bind " + c.database,
		`(?m)(^  server minio-\d .*\n)+`:    stores.String(),
		`(?m)(^  server postgres-\d .*\n)+`: nodes.String(),
	}) + "\nfrontend edges-alone\n  bind " + c.EdgesAddress + "\n" + bound + "\n  option forwardfor\n  default_backend edges-alone" +
		"\nbackend edges-alone\n  balance leastconn\n  timeout server 12s\n" + edges.String()

	p := c.newProgram("haproxy", "haproxy")
	p.environ = append(p.environ, UnboundedLoad)
	p.command = append(p.command, "-W", "-db", "-f", WriteFile(c, p.directory, "haproxy.cfg", config))
	p.Start(c)
	p.AwaitListens(c, c.Address)
	c.Balancer = p
}

// Reload has haproxy reload its configuration: a new process takes over, and the old one exits when
// its requests are done.
func (c *Cluster) Reload() {
	testenv.Do(c, c.Balancer.running.Process.Signal(syscall.SIGUSR2))
}

// ComposeHaproxy returns the configuration of the haproxy of docker-compose.yml, from a repository, for what runs
// on this machine: cores and edges are lines with servers, and edges connect to a core without it.
func ComposeHaproxy(tb testing.TB, root, address, cores, edges string) string {
	tb.Helper()
	return AdaptConfig(tb, root, "compose/haproxy.cfg", map[string]string{
		`(?m)^  bind :8080$`:                        "  bind " + address,
		`(?m)^  server-template .* core:8080 .*\n`:  cores,
		`(?m)^  server-template .* edge:8081 .*\n`:  edges,
		` resolvers containers resolve-prefer .*\n`: "\n",
		`(?s)\n# Edges reach a core .*$`:            "",
	})
}

// AdaptConfig returns a file of deploy, in a repository, with each pattern replaced, which must match once.
func AdaptConfig(tb testing.TB, root, name string, changes map[string]string) string {
	tb.Helper()
	config := read(tb, root, "deploy", name)
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
func (c *Cluster) balancerHealthy() bool {
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
func (c *Cluster) RejectedConnections() (n int) {
	for _, row := range c.balancerStats() {
		if row["svname"] == "FRONTEND" {
			n += testenv.Must(strconv.Atoi(row["dcon"]))(c)
		}
	}
	return n
}

// balancerStats returns haproxy's statistics: a row for each frontend, backend and server, with the
// values by column. It returns none if haproxy does not respond.
func (c *Cluster) balancerStats() (stats []map[string]string) {
	_, body := ask(c, c.client, http.MethodGet, "http://"+c.stats+"/;csv")
	rows, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
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
