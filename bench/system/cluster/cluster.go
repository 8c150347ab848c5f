// Package cluster starts a site of many machines on this one, made of the real programs on
// loopback: cores and edges behind haproxy, PostgreSQL with standbys and Patroni for failover, and
// a MinIO of four nodes.
package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Options configure a cluster.
type Options struct {
	// Etcd, MinIO and MC are paths of programs. Without Etcd there is one PostgreSQL without
	// Patroni, and without MinIO files are stored in a directory.
	Etcd, MinIO, MC string
	// Prometheus and NodeExporter are paths of programs, too. Without them there is no
	// monitoring, or no metrics of the machine.
	Prometheus, NodeExporter string

	RepoRoot string // path of the repository
	// Direct has cores connect to all database nodes and select the primary, instead of going
	// through haproxy.
	Direct bool
	// Settings override the edges' defaults, by name.
	Settings map[string]string
}

// Cluster is a running site. Its components may be killed and started again.
type Cluster struct {
	Etcd     []Component
	Nodes    []*Node
	Stores   []Component
	Cores    [2]*stack.Process
	Edges    [3]*stack.Process
	Balancer Component
	// Prometheus monitors the cluster; nil without one.
	Prometheus Component

	// Address is that of the balancer, which serves the whole site. EdgesAddress leads to edges
	// only, which pass the API on to cores.
	Address, EdgesAddress string

	balancer   *program // the same as Balancer
	prometheus stack.Prometheus
	options    Options
	directory  string
	client     *http.Client
	etcd       []string // client addresses
	etcdOps    []string // metrics addresses
	stores     []string // addresses of the MinIO nodes
	primary    string   // URL with all nodes, from which a client selects the primary
	ports
}

// ports are the addresses at which the balancer serves internal clients, and its statistics.
type ports struct{ database, store, cores, stats string }

// Start starts a cluster. Its components end with the test, or with its process should that be
// killed.
func Start(tb testing.TB, options Options) *Cluster {
	tb.Helper()
	// Not the test's own directory, which other users cannot read.
	directory, err := os.MkdirTemp("", "veneer-cluster-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(directory, 0o755); err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{
		options: options, directory: directory, client: &http.Client{Timeout: time.Second}, Address: stack.FreeAddress(tb), EdgesAddress: stack.FreeAddress(tb),
		ports: ports{stack.FreeAddress(tb), stack.FreeAddress(tb), stack.FreeAddress(tb), stack.FreeAddress(tb)},
	}
	c.startCleaner(tb)
	database := c.startDatabase(tb)
	files := c.startStores(tb)
	balanced := ""
	if files.Endpoint != "" {
		balanced = "http://" + c.store
	}
	for i := range c.Cores {
		files.AccessKey, files.SecretKey = c.secret(tb, "writer_access_key"), c.secret(tb, "writer_secret_key")
		core := stack.NewCoreAt(tb, files, c.primary) // the balancer does not run yet
		core.Set("CORE_DATABASE_URL", database)
		core.Set("CORE_OBJECTS_ENDPOINT", balanced)
		core.Set("CORE_TRUSTED_PROXIES", "127.0.0.1/32")
		core.Set("CORE_LIMIT_REQUESTS", "0")
		core.Set("CORE_LIMIT_CHANGES", "0")
		core.Set("CORE_LIMIT_UPLOADS", "0")
		listenAt(tb, core, "CORE_LISTEN", "CORE_EDGES_LISTEN", "CORE_OPS_LISTEN")
		c.Cores[i] = core
	}
	for i := range c.Edges {
		files.AccessKey, files.SecretKey = c.secret(tb, "reader_access_key"), c.secret(tb, "reader_secret_key")
		edge := stack.NewEdgeAt(tb, files, "http://"+c.cores, c.Cores[0].Setting("CORE_EDGE_SECRETS"))
		edge.Set("EDGE_OBJECTS_ENDPOINT", balanced)
		edge.Set("EDGE_TRUSTED_PROXIES", "127.0.0.1/32")
		edge.Set("EDGE_API_UPSTREAM", "http://"+c.Cores[i%len(c.Cores)].Setting("CORE_LISTEN"))
		for name, value := range options.Settings {
			edge.Set(name, value)
		}
		listenAt(tb, edge, "EDGE_LISTEN", "EDGE_OPS_LISTEN")
		c.Edges[i] = edge
	}
	c.startBalancer(tb)
	for _, p := range append(c.Cores[:], c.Edges[:]...) {
		p.Start(tb)
	}
	c.AwaitHealthy(tb)
	if options.Prometheus != "" {
		c.startPrometheus(tb)
	}
	return c
}

// listenAt sets fixed listen addresses, which survive a restart.
func listenAt(tb testing.TB, p *stack.Process, listeners ...string) {
	tb.Helper()
	for _, name := range listeners {
		p.Set(name, stack.FreeAddress(tb))
	}
}

// cleanupScript waits until its standard input is closed. PostgreSQL is a child of no process here,
// so it must be killed by its PID file, after a check that the PID is still its own.
const cleanupScript = `cat >/dev/null
for file in "$0"/*/data/postmaster.pid; do
	read -r pid <"$file" && grep -qF "$0" "/proc/$pid/cmdline" && kill -KILL "$pid" $(pgrep -P "$pid")
done
umount -l "$0"/*.disk
rm -rf -- "$0"`

// Directory creates a directory of the cluster and returns its path. What is mounted there is
// unmounted with the cluster if the name ends in ".disk".
func (c *Cluster) Directory(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(c.directory, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		tb.Fatal(err)
	}
	return path
}

// startCleaner starts a process that cleans up after this one, however it ends.
func (c *Cluster) startCleaner(tb testing.TB) {
	tb.Helper()
	cleaner := exec.Command("sh", "-c", cleanupScript, c.directory) //nolint:noctx // ends after this process
	cleaner.SysProcAttr = &syscall.SysProcAttr{Setsid: true}        // ignores Ctrl-C
	stdin, err := cleaner.StdinPipe()
	if err == nil {
		err = cleaner.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			c.showLogs(tb)
		}
		_ = stdin.Close()
		_ = cleaner.Wait() // what it cannot remove was never there
	})
}

// showLogs logs the end of each log file.
func (c *Cluster) showLogs(tb testing.TB) {
	tb.Helper()
	const end = 2000
	paths, err := filepath.Glob(filepath.Join(c.directory, "*.log"))
	if err != nil {
		return
	}
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil {
			tb.Logf("%s:\n%s", filepath.Base(path), content[max(0, len(content)-end):])
		}
	}
}

// newProgram returns a program with a directory of its own.
func (c *Cluster) newProgram(tb testing.TB, name, path string) *program {
	tb.Helper()
	resolved, err := exec.LookPath(path)
	if err != nil {
		testenv.Skip(tb, path+" is missing; make cluster installs it")
	}
	p := &program{name: name, arguments: []string{resolved}, directory: filepath.Join(c.directory, name), owner: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	if p.arguments[0], err = filepath.Abs(resolved); err != nil {
		tb.Fatal(err)
	}
	if err := os.Mkdir(p.directory, 0o700); err != nil {
		tb.Fatal(err)
	}
	return p
}

// startStores starts a MinIO of four nodes with erasure coding, which needs any two of them,
// prepares it as deploy does, and returns its configuration.
func (c *Cluster) startStores(tb testing.TB) blobstore.Config {
	tb.Helper()
	if c.options.MinIO == "" {
		return blobstore.Config{URL: "file://" + filepath.Join(c.directory, "textures")}
	}
	const nodes = 4
	var volumes []string
	var all []*program
	for i := range nodes {
		p, address := c.newProgram(tb, fmt.Sprintf("minio-%d", i+1), c.options.MinIO), stack.FreeAddress(tb)
		all, c.stores = append(all, p), append(c.stores, address)
		volumes = append(volumes, "http://"+address+filepath.Join(p.directory, "data"))
	}
	for _, role := range []string{"", "writer_", "reader_"} {
		for _, name := range []string{"access_key", "secret_key"} {
			var key [10]byte
			_, _ = rand.Read(key[:]) // never fails
			if err := os.WriteFile(filepath.Join(c.directory, "s3_"+role+name), []byte(hex.EncodeToString(key[:])), 0o600); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for i, p := range all {
		p.arguments = append(append(p.arguments, "server", "--address", c.stores[i]), volumes...)
		p.environ = []string{
			"MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_PROMETHEUS_AUTH_TYPE=public", "MINIO_ROOT_USER=" + c.secret(tb, "access_key"), "MINIO_ROOT_PASSWORD=" + c.secret(tb, "secret_key"),
			"MINIO_CI_CD=1",                      // else it rejects four disks that are one
			"_MINIO_SERVER_LOCAL=" + c.stores[i], // else, in a container, it waits until it is not on loopback
		}
		p.Start(tb)
		c.Stores = append(c.Stores, p)
	}
	for i, p := range all {
		p.await(tb, "is ready", func() bool { return c.isOK("http://" + c.stores[i] + "/minio/health/cluster") })
	}
	command := exec.CommandContext(tb.Context(), filepath.Join(c.options.RepoRoot, "deploy/minio/prepare"), "http://"+c.stores[0], c.directory, c.options.MC)
	if output, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("prepare MinIO: %v\n%s", err, output)
	}
	return blobstore.Config{URL: "s3://veneer", Endpoint: "http://" + c.stores[0]}
}

// secret returns one of MinIO's secrets, empty without MinIO.
func (c *Cluster) secret(tb testing.TB, name string) string {
	tb.Helper()
	if c.options.MinIO == "" {
		return ""
	}
	content, err := os.ReadFile(filepath.Join(c.directory, "s3_"+name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// isOK reports whether a URL responds with 200.
func (c *Cluster) isOK(url string) bool {
	response, err := c.client.Get(url) //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// AwaitHealthy waits until every component works again.
func (c *Cluster) AwaitHealthy(tb testing.TB) {
	tb.Helper()
	for _, p := range append(c.Cores[:], c.Edges[:]...) {
		p.AwaitReady(tb)
	}
	for _, address := range c.etcd {
		await(tb, "etcd at "+address+" has a leader", func() bool { return c.isOK("http://" + address + "/health") })
	}
	if len(c.Nodes) > 0 {
		await(tb, "both standbys follow a primary", func() bool { return c.hasStandbys(tb) })
	}
	for _, address := range c.stores {
		await(tb, "MinIO at "+address+" accepts writes", func() bool { return c.acceptsWrites(tb, address) })
	}
	await(tb, "the balancer considers all servers up", func() bool { return c.balancerHealthy(tb) })
}

// AwaitRedundant waits until each MinIO node has reported for so long, without interruption, that
// the others can do without it.
func (c *Cluster) AwaitRedundant(tb testing.TB, duration time.Duration) {
	tb.Helper()
	since := time.Now()
	await(tb, "each MinIO node is redundant", func() bool {
		for _, address := range c.stores {
			if !c.isOK("http://" + address + "/minio/health/cluster?maintenance=true") {
				since = time.Now()
				return false
			}
		}
		return time.Since(since) >= duration
	})
}

// acceptsWrites reports whether a MinIO node stores a file, and deletes it. For some seconds after
// its start a node may report that it is healthy and reject writes.
func (c *Cluster) acceptsWrites(tb testing.TB, address string) bool {
	tb.Helper()
	node, err := blobstore.New(blobstore.Config{
		URL: "s3://veneer", Endpoint: "http://" + address, Region: "us-east-1", Timeout: time.Second,
		AccessKey: c.secret(tb, "writer_access_key"), SecretKey: c.secret(tb, "writer_secret_key"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	file := []byte(address)
	return node.Put(tb.Context(), skin.HashOf(file), file) == nil && node.Delete(tb.Context(), skin.HashOf(file)) == nil
}

// Describe prints the addresses and processes of the cluster.
func (c *Cluster) Describe(tb testing.TB, out io.Writer) {
	tb.Helper()
	fmt.Fprintf(out, "\nThe cluster runs. Ctrl-C stops it and deletes its data.\n\n  the site     http://%s\n  the balancer http://%s\n", c.Address, c.stats)
	for i, p := range c.Cores {
		fmt.Fprintf(out, "  core %d       http://%s, operators http://%s, process %d\n", i+1, p.Setting("CORE_LISTEN"), p.Setting("CORE_OPS_LISTEN"), p.PID())
	}
	for i, p := range c.Edges {
		fmt.Fprintf(out, "  edge %d       http://%s, operators http://%s, process %d\n", i+1, p.Setting("EDGE_LISTEN"), p.Setting("EDGE_OPS_LISTEN"), p.PID())
	}
	for _, n := range c.Nodes {
		fmt.Fprintf(out, "  %s   %s, Patroni http://%s, process %d\n", n.Name, n.URL(), n.patroniAddress, n.command.Process.Pid)
	}
	for i, address := range c.stores {
		fmt.Fprintf(out, "  minio-%d      http://%s\n", i+1, address)
	}
	if c.Prometheus != nil {
		fmt.Fprintf(out, "  Prometheus   http://%s/alerts\n", c.prometheus)
	}
	fmt.Fprintf(out, "  etcd         %s\n  logs         %s\n\n", strings.Join(c.etcd, ", "), filepath.Join(c.directory, "*.log"))
}
