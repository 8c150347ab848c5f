package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// Node is a machine of the database: PostgreSQL and the Patroni that manages it.
type Node struct {
	*program

	Name, Address  string
	patroniAddress string // of Patroni's REST API
	data           string
	holdScript     string // path of veneer-hold
}

// startEtcd starts the etcd of three members in which Patroni stores the leader lock.
func (c *Cluster) startEtcd(tb testing.TB) {
	tb.Helper()
	const members = 3
	var programs []*program
	var peers, all []string
	for i := range members {
		p := c.newProgram(tb, fmt.Sprintf("etcd-%d", i+1), c.options.Etcd)
		programs, peers, c.etcd = append(programs, p), append(peers, "http://"+stack.FreeAddress(tb)), append(c.etcd, stack.FreeAddress(tb))
		all, c.etcdOps = append(all, p.name+"="+peers[i]), append(c.etcdOps, stack.FreeAddress(tb))
	}
	for i, p := range programs {
		url := "http://" + c.etcd[i]
		p.arguments = append(p.arguments, "--name", p.name, "--data-dir", filepath.Join(p.directory, "data"),
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(all, ","), "--listen-metrics-urls", "http://"+c.etcdOps[i], "--logger", "zap", "--enable-v2")
		p.Start(tb)
		c.Etcd = append(c.Etcd, p)
	}
}

// etcdPath is the prefix of Patroni's keys in etcd, the leader's among them.
const etcdPath = "/v2/keys/service/veneer"

// Primary returns the name of the node with the leader lock; empty if there is none, or if etcd
// does not respond.
func (c *Cluster) Primary() string {
	for _, address := range c.etcd {
		response, err := c.client.Get("http://" + address + etcdPath + "/leader") //nolint:noctx // the client has a timeout
		if err != nil {
			continue
		}
		var answer struct {
			Node struct {
				Value string `json:"value"`
			} `json:"node"`
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err == nil && (response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotFound) {
			return answer.Node.Value
		}
	}
	return ""
}

// newNodes returns the database's nodes, which have not started.
func (c *Cluster) newNodes(tb testing.TB) {
	tb.Helper()
	programs := stack.PostgresPrograms(tb)
	const nodes = 3
	for i := range nodes {
		n := &Node{program: c.newProgram(tb, fmt.Sprintf("postgres-%d", i+1), "patroni"), Address: stack.FreeAddress(tb), patroniAddress: stack.FreeAddress(tb)}
		n.Name, n.data = n.name, filepath.Join(n.directory, "data")
		n.holdScript = filepath.Join(c.options.RepoRoot, "deploy/machines/veneer-hold")
		n.owner = stack.ChownToPostgres(tb, n.directory)
		c.Nodes = append(c.Nodes, n)
	}
	for _, n := range c.Nodes {
		settings, err := yaml.Marshal(c.patroni(tb, n, programs))
		if err != nil {
			tb.Fatal(err)
		}
		path := filepath.Join(n.directory, "patroni.yml")
		if err := os.WriteFile(path, settings, 0o644); err != nil {
			tb.Fatal(err)
		}
		n.arguments, n.environ = append(n.arguments, path), patroniCredentials
	}
}

// patroniCredentials protect Patroni's REST API from changes; the other nodes and patronictl send
// them.
var patroniCredentials = []string{"PATRONI_RESTAPI_USERNAME=patroni", "PATRONI_RESTAPI_PASSWORD=patroni"}

type object = map[string]any

// patroni returns a node's settings: those of deploy/machines with overrides for this cluster.
func (c *Cluster) patroni(tb testing.TB, n *Node, programs string) object {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(c.options.RepoRoot, "deploy/machines/patroni.yml"))
	if err != nil {
		tb.Fatal(err)
	}
	var settings object
	if err := yaml.Unmarshal(content, &settings); err != nil {
		tb.Fatal(err)
	}
	trusted := object{"username": "postgres"}
	overrides := object{
		"name":    n.Name,
		"restapi": object{"listen": n.patroniAddress, "connect_address": n.patroniAddress},
		"etcd":    object{"hosts": c.etcd},
		"postgresql": object{
			"listen": n.Address, "connect_address": n.Address, "data_dir": n.data, "bin_dir": programs, "pgpass": filepath.Join(n.directory, "pgpass"),
			"authentication": object{"superuser": trusted, "replication": trusted, "rewind": trusted},
			"pg_hba":         []string{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
			"parameters":     object{"unix_socket_directories": "", "shared_buffers": "64MB"},
		},
	}
	var merge func(into, from object)
	merge = func(into, from object) {
		for name, value := range from {
			existing, both := into[name].(object)
			inner, nested := value.(object)
			if both && nested && name != "authentication" {
				merge(existing, inner)
				continue
			}
			into[name] = value
		}
	}
	merge(settings, overrides)
	return settings
}

// URL returns the URL of the node's database.
func (n *Node) URL() string { return databaseURL(n.Address) }

func databaseURL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

// processRoots returns the processes from which all others of the node descend: PostgreSQL is no
// child of Patroni.
func (n *Node) processRoots() (parents []int) {
	select {
	case <-n.ended:
	default:
		parents = append(parents, n.command.Process.Pid)
	}
	if pid := n.postmaster(); pid > 0 {
		parents = append(parents, pid)
	}
	return parents
}

// postmaster returns the PID of PostgreSQL's first process, 0 if there is none.
func (n *Node) postmaster() (pid int) {
	content, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(content), &pid); err != nil {
		return 0
	}
	// The file may be left over from a killed process.
	running, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(running, []byte(n.data)) {
		return 0
	}
	return pid
}

// Kill kills all processes of the node, as if its machine had failed.
func (n *Node) Kill(tb testing.TB) {
	tb.Helper()
	stack.AwaitGone(tb, stack.SignalTree(tb, syscall.SIGKILL, n.processRoots()...)...)
	<-n.ended
}

// KillPostgres kills PostgreSQL only; Patroni detects it.
func (n *Node) KillPostgres(tb testing.TB) {
	tb.Helper()
	pid := n.postmaster()
	if pid == 0 {
		tb.Fatalf("PostgreSQL does not run on %s", n.Name)
	}
	stack.SignalTree(tb, syscall.SIGKILL, pid)
}

// Pause stops all processes of the node.
func (n *Node) Pause(tb testing.TB) {
	tb.Helper()
	stack.SignalTree(tb, syscall.SIGSTOP, n.processRoots()...)
}

// PausePatroni stops Patroni only: PostgreSQL continues unmanaged.
func (n *Node) PausePatroni(tb testing.TB) {
	tb.Helper()
	n.program.Pause(tb)
}

// Resume continues them.
func (n *Node) Resume(tb testing.TB) {
	tb.Helper()
	stack.SignalTree(tb, syscall.SIGCONT, n.processRoots()...)
}

// Switchover makes another node the primary, as upgrades.md does.
func (n *Node) Switchover(tb testing.TB, to *Node) {
	tb.Helper()
	settings := n.arguments[len(n.arguments)-1]
	command := holdCommand(tb, n.holdScript, n.Address, "patronictl", "-c", settings, "switchover", "--leader", n.Name, "--candidate", to.Name, "--force", "veneer")
	command.Env = append(command.Env, patroniCredentials...)
	if output, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, output)
	}
}

// holdCommand returns a command that runs under the veneer-hold at a path, for the primary at an
// address.
func holdCommand(tb testing.TB, path, address string, arguments ...string) *exec.Cmd {
	tb.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), path, arguments...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PGHOST="+host, "PGPORT="+port, "PGUSER=postgres", "PGDATABASE=postgres")
	return command
}

// Conn returns a connection to the primary's database.
func (c *Cluster) Conn(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), c.primary)
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}

const countStandbys = `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'`

// hasStandbys reports whether the primary has both of its standbys.
func (c *Cluster) hasStandbys(tb testing.TB) bool {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), c.primary)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	var standbys int
	return conn.QueryRow(tb.Context(), countStandbys).Scan(&standbys) == nil && standbys == len(c.Nodes)-1
}

// startDatabase starts the nodes, the first one as the primary, and returns the URL by which cores
// reach the primary.
func (c *Cluster) startDatabase(tb testing.TB) (url string) {
	tb.Helper()
	if c.options.Etcd == "" {
		single := stack.NewPostgres(tb)
		c.primary = single.URL(single.Address)
		return c.primary
	}
	c.startEtcd(tb)
	c.newNodes(tb)
	addresses := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addresses[i] = n.Address
	}
	c.primary = databaseURL(strings.Join(addresses, ",")) + "&target_session_attrs=read-write"
	first := c.Nodes[0]
	first.Start(tb)
	first.await(tb, "is the primary", func() bool { return c.Primary() == first.Name })
	for _, n := range c.Nodes[1:] {
		n.Start(tb)
	}
	await(tb, "both standbys follow", func() bool { return c.hasStandbys(tb) })
	if c.options.Direct {
		return c.primary
	}
	return databaseURL(c.database)
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
