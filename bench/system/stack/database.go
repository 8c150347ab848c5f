package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Node is a machine of the database: Patroni and the PostgreSQL that it manages, which is no child of it.
type Node struct {
	*Program

	Name, Address  string
	patroniAddress string // of Patroni's REST API
	data           string
	holdScript     string // path of veneer-hold
}

// startEtcd starts the etcd of three members in which Patroni stores the leader lock.
func (c *Cluster) startEtcd() {
	const members = 3
	var programs []*Program
	var peers, all []string
	for i := range members {
		p := c.newProgram(fmt.Sprintf("etcd-%d", i+1), c.options.Etcd)
		programs, peers, c.etcd = append(programs, p), append(peers, "http://"+FreeAddress(c)), append(c.etcd, FreeAddress(c))
		all, c.etcdOps = append(all, p.name+"="+peers[i]), append(c.etcdOps, FreeAddress(c))
	}
	for i, p := range programs {
		url := "http://" + c.etcd[i]
		p.command = append(p.command, "--name", p.name, "--data-dir", filepath.Join(p.directory, "data"),
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(all, ","), "--listen-metrics-urls", "http://"+c.etcdOps[i], "--logger", "zap", "--enable-v2")
		p.Start(c)
		c.Etcd = append(c.Etcd, p)
	}
}

// etcdPath is the prefix of Patroni's keys in etcd, the leader's among them.
const etcdPath = "/v2/keys/service/veneer"

// Primary returns the name of the node with the leader lock; empty if there is none, or if etcd
// does not respond.
func (c *Cluster) Primary() string {
	for _, address := range c.etcd {
		var answer struct{ Node struct{ Value string } }
		status, body := ask(c, c.client, http.MethodGet, "http://"+address+etcdPath+"/leader")
		if json.Unmarshal(body, &answer) == nil && (status == http.StatusOK || status == http.StatusNotFound) {
			return answer.Node.Value
		}
	}
	return ""
}

// Roles returns the primary and the standbys.
func (c *Cluster) Roles() (primary *Node, standbys []*Node) {
	name := c.Primary()
	for _, n := range c.Nodes {
		if n.Name == name {
			primary = n
		} else {
			standbys = append(standbys, n)
		}
	}
	if primary == nil {
		c.Fatal("there is no primary")
	}
	return primary, standbys
}

// newNodes returns the database's nodes, which have not started.
func (c *Cluster) newNodes() {
	const nodes = 3
	for i := range nodes {
		n := &Node{Program: c.newProgram(fmt.Sprintf("postgres-%d", i+1), "patroni"), Address: FreeAddress(c), patroniAddress: FreeAddress(c)}
		n.Name, n.data = n.name, filepath.Join(n.directory, "data")
		n.holdScript = filepath.Join(c.options.RepoRoot, "deploy/machines/veneer-hold")
		n.attributes, n.others = ChownToPostgres(c, n.directory), n.postmaster
		path := filepath.Join(n.directory, "patroni.yml")
		testenv.Do(c, os.WriteFile(path, []byte(c.patroni(n)), 0o644))
		n.command, n.environ = append(n.command, path), append(n.environ, patroniCredentials...)
		c.Nodes = append(c.Nodes, n)
	}
}

// patroniCredentials protect Patroni's REST API from changes; the other nodes and patronictl send
// them.
var patroniCredentials = []string{"PATRONI_RESTAPI_USERNAME=patroni", "PATRONI_RESTAPI_PASSWORD=patroni"}

// patroni returns a node's settings: the settings of deploy/machines, adapted to this cluster.
func (c *Cluster) patroni(n *Node) string {
	listen := fmt.Sprintf("  listen: %[1]s\n  connect_address: %[1]s\n", n.patroniAddress)
	database := fmt.Sprintf(`postgresql:
  listen: %[1]s
  connect_address: %[1]s
  data_dir: %[2]s
  bin_dir: %[3]s
  pgpass: %[4]s
  authentication: {superuser: {username: postgres}, replication: {username: postgres}, rewind: {username: postgres}}
  pg_hba: [host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  parameters:
    unix_socket_directories: ''
`, n.Address, n.data, PostgresPrograms(c), filepath.Join(n.directory, "pgpass"))
	return AdaptConfig(c, c.options.RepoRoot, "machines/patroni.yml", map[string]string{
		`(?m)^name: .*$`:                        "name: " + n.Name,
		`(?m)^  listen: .*:8008\n.*\n`:          listen,
		`(?m)^  hosts: .*$`:                     `  hosts: ["` + strings.Join(c.etcd, `", "`) + `"]`,
		`(?ms)^postgresql:$.*?^  parameters:\n`: database,
		`shared_buffers: 2GB`:                   "shared_buffers: 64MB",
	})
}

// URL returns the URL of the node's database.
func (n *Node) URL() string { return databaseURL(n.Address) }

// postmaster returns the PID of PostgreSQL's first process, if there is one.
func (n *Node) postmaster() []int {
	content, _ := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	var pid int
	_, _ = fmt.Sscan(string(content), &pid)
	// The file may be left over from a killed process.
	running, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !bytes.Contains(running, []byte(n.data)) {
		return nil
	}
	return []int{pid}
}

// KillPostgres kills PostgreSQL only; Patroni detects it.
func (n *Node) KillPostgres(tb testing.TB) {
	tb.Helper()
	if len(signalTree(tb, syscall.SIGKILL, n.postmaster()...)) == 0 {
		tb.Fatalf("PostgreSQL does not run on %s", n.Name)
	}
}

// PausePatroni stops Patroni only: PostgreSQL continues unmanaged.
func (n *Node) PausePatroni(tb testing.TB) {
	tb.Helper()
	signalTree(tb, syscall.SIGSTOP, n.PID())
}

// Switchover makes another node the primary, as upgrades.md does.
func (n *Node) Switchover(tb testing.TB, to *Node) {
	tb.Helper()
	settings := n.command[len(n.command)-1]
	command := holdCommand(tb, n.holdScript, n.Address, "patronictl", "-c", settings, "switchover", "--leader", n.Name, "--candidate", to.Name, "--force", "veneer")
	command.Env = append(command.Env, patroniCredentials...)
	MustRun(tb, command)
}

// holdCommand returns a command that runs under the veneer-hold at a path, for the primary at an
// address.
func holdCommand(tb testing.TB, path, address string, arguments ...string) *exec.Cmd {
	tb.Helper()
	host, port := HostPort(address)
	command := exec.CommandContext(tb.Context(), path, arguments...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PGHOST="+host, "PGPORT="+port, "PGUSER=postgres", "PGDATABASE=postgres")
	return command
}

// Conn returns a connection to the primary's database.
func (c *Cluster) Conn() *pgx.Conn {
	return testenv.Must(pgx.Connect(c.Context(), c.primary))(c)
}

const countStandbys = `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'`

// hasStandbys reports whether the primary has both of its standbys.
func (c *Cluster) hasStandbys() bool {
	conn, err := pgx.Connect(c.Context(), c.primary)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(c.Context()) }()
	var standbys int
	return conn.QueryRow(c.Context(), countStandbys).Scan(&standbys) == nil && standbys == len(c.Nodes)-1
}

// startDatabase starts the nodes, the first one as the primary, and returns the URL by which cores
// reach the primary.
func (c *Cluster) startDatabase() (url string) {
	if c.options.Etcd == "" {
		single := NewPostgres(c)
		c.primary = single.URL(single.Address)
		return c.primary
	}
	c.startEtcd()
	c.newNodes()
	addresses := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addresses[i] = n.Address
	}
	c.primary = databaseURL(strings.Join(addresses, ",")) + "&target_session_attrs=read-write"
	c.startNodes()
	if c.options.Direct {
		return c.primary
	}
	return databaseURL(c.database)
}

// startNodes starts the nodes, the first one as the primary.
func (c *Cluster) startNodes() {
	first := c.Nodes[0]
	first.Start(c)
	first.await(c, "is the primary", func() bool { return c.Primary() == first.Name })
	for _, n := range c.Nodes[1:] {
		n.Start(c)
	}
	await(c, "both standbys follow", func() bool { return c.hasStandbys() })
}

// Backup makes a base backup of the database, replacing an older one.
func (c *Cluster) Backup() {
	first := c.Nodes[0]
	primary, _ := c.Roles()
	testenv.Do(c, os.RemoveAll(first.backup()))
	command := exec.CommandContext(c.Context(), filepath.Join(PostgresPrograms(c), "pg_basebackup"),
		"-D", first.backup(), "-d", primary.URL(), "--checkpoint=fast", "--wal-method=stream")
	command.Dir, command.SysProcAttr = first.directory, &first.attributes
	MustRun(c, command)
}

func (n *Node) backup() string { return filepath.Join(n.directory, "backup") }

// Restore restores the backup on the first node and has the others follow it, as backup.md does
// with Patroni; cores are stopped meanwhile. All later writes are lost, and all sessions have
// ended.
func (c *Cluster) Restore() {
	for _, core := range c.Cores {
		testenv.Do(c, core.Stop(c))
	}
	for _, n := range c.Nodes {
		n.Kill(c)
	}
	// Patroni must not elect the former primary, or the node with the most WAL. What it stores in etcd is
	// deleted as by patronictl remove.
	status, body := ask(c, c.client, http.MethodDelete, "http://"+c.etcd[0]+etcdPath+"?recursive=true")
	if status != http.StatusOK {
		c.Fatalf("etcd answers %d %s", status, body)
	}
	for _, n := range c.Nodes {
		testenv.Do(c, os.RemoveAll(n.data))
	}
	first := c.Nodes[0]
	testenv.Do(c, os.Rename(first.backup(), first.data))
	c.startNodes()
	conn := c.Conn()
	_, err := conn.Exec(c.Context(), read(c, c.options.RepoRoot, "core/postgres/restored.sql"))
	_ = conn.Close(c.Context())
	testenv.Do(c, err)
	c.Cores[0].Run(c, "migrate")
	for _, core := range c.Cores {
		core.Start(c)
	}
}
