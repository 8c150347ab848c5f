package cluster

import (
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inside is what the balancer does besides what it does in docker-compose.yml: it leads
// edges to a core, cores and edges to a node of the MinIO, and cores to the primary.
const inside = `
# Told by an operator's programs.
listen states
  bind %s
  stats enable
  stats uri /

# What edges ask changes nothing, so all of it may be asked again. A stream of changes
# beats five times a second, and an edge gives up one that does not for a second.
listen cores-for-edges
  bind %s
  balance leastconn
  timeout server 1s
  retry-on conn-failure empty-response response-timeout
%s
listen store
  bind %s
  option httpchk GET /minio/health/live
  balance leastconn
  timeout server 2s
  retry-on conn-failure empty-response response-timeout
%s
# Patroni answers 200 on the node that is the primary only. Nobody stays connected to one
# that no longer is.
listen database
  bind %s
  mode tcp
  option tcplog
  option dontlog-normal
  option httpchk GET /primary
  timeout client 1h
  timeout server 1h
  balance first
  default-server on-marked-down shutdown-sessions
%s`

// startBalancer starts haproxy as docker-compose.yml does, but with the addresses that
// things have here instead of a container's, and more of them.
func (c *Cluster) startBalancer(tb testing.TB) {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(c.options.Top, "deploy/compose/haproxy.cfg"))
	if err != nil {
		tb.Fatal(err)
	}
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
		server(&nodes, "postgres", i, n.Address, n.checks)
	}
	config := string(content)
	for pattern, with := range map[string]string{
		`(?m)^  bind :8080$`:                   "  bind " + c.Address,
		`(?m)^  server core .*\n`:              cores.String(),
		`(?m)(^  server edge-\d .*\n)+`:        edges.String(),
		` resolvers containers init-addr .*\n`: "\n",
	} {
		found := regexp.MustCompile(pattern)
		if len(found.FindAllString(config, -1)) != 1 {
			tb.Fatalf("deploy/compose/haproxy.cfg has no line, or several, like %s", pattern)
		}
		config = found.ReplaceAllLiteralString(config, with)
	}
	config += fmt.Sprintf(inside, c.states, c.cores, &forEdges, c.store, &stores, c.database, &nodes)

	p := c.newProgram(tb, "haproxy", "haproxy")
	path := filepath.Join(p.directory, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	p.arguments = append(p.arguments, "-db", "-f", path)
	p.Start(tb)
	p.await(tb, "listens", func() bool {
		conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", c.Address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	c.Balancer = p
}

// balanced reports whether the balancer counts on all that it should: on everybody, but
// on one node of the database.
func (c *Cluster) balanced(tb testing.TB) bool {
	tb.Helper()
	response, err := c.ask.Get("http://" + c.states + "/;csv") //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		return false
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[strings.TrimPrefix(name, "# ")] = i
	}
	up := 0
	for _, row := range rows[1:] {
		if name := row[column["svname"]]; name != "FRONTEND" && name != "BACKEND" && strings.HasPrefix(row[column["status"]], "UP") {
			up++
		}
	}
	return up == 2*len(c.Cores)+len(c.Edges)+len(c.stores)+min(1, len(c.Nodes))
}
