package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// ClusterOptions configure a cluster.
type ClusterOptions struct {
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
	// Settings of cores and edges, as NAME=VALUE.
	Settings []string
}

// Cluster is a running site of many machines on this one, made of the real programs on loopback: cores and edges behind
// haproxy, PostgreSQL with standbys and Patroni for failover, and a MinIO of four nodes. Its components may be killed
// and started again.
type Cluster struct {
	testing.TB // with which it was started

	Etcd     []Component
	Nodes    []*Node
	Stores   []Component
	Cores    [2]*Process
	Edges    [3]*Process
	Balancer *Program
	// Prometheus monitors the cluster; nil without one.
	Prometheus *Program

	// Address is the balancer's address, which serves the whole site. EdgesAddress leads to edges
	// only, which pass the API on to cores.
	Address, EdgesAddress string

	prometheus Prometheus
	options    ClusterOptions
	directory  string
	keys       secrets // of MinIO's users
	client     *http.Client
	etcd       []string // client addresses
	etcdOps    []string // metrics addresses
	stores     []string // addresses of the MinIO nodes
	primary    string   // URL with all nodes, from which a client selects the primary
	// The addresses at which the balancer serves internal clients, and its statistics.
	database, store, cores, stats string
}

// StartCluster starts a cluster. Its components end with the test, or with its process should that be
// killed.
func StartCluster(tb testing.TB, options ClusterOptions) *Cluster {
	tb.Helper()
	// Not the test's own directory, which other users cannot read.
	directory := testenv.Must(os.MkdirTemp("", "veneer-cluster-"))(tb) //nolint:usetesting // see above
	testenv.Do(tb, os.Chmod(directory, 0o755))
	c := &Cluster{
		TB: tb, options: options, directory: directory, keys: secrets(directory),
		client: &http.Client{Timeout: time.Second}, Address: FreeAddress(tb), EdgesAddress: FreeAddress(tb),
		database: FreeAddress(tb), store: FreeAddress(tb), cores: FreeAddress(tb), stats: FreeAddress(tb),
	}
	startCleaner(tb, cleanupScript, directory)
	database := c.startDatabase()
	files := c.startStores()
	balanced := ""
	if files.Endpoint != "" {
		balanced = "http://" + c.store
	}
	for i := range c.Cores {
		core := NewCore(tb, c.withKeys(files, "writer"), c.primary) // the balancer does not run yet
		core.Set(
			"CORE_DATABASE_URL="+database, "CORE_OBJECTS_ENDPOINT="+balanced, "CORE_TRUSTED_PROXIES=127.0.0.1/32",
			"CORE_LIMIT_REQUESTS=0", "CORE_LIMIT_CHANGES=0", "CORE_LIMIT_UPLOADS=0",
		)
		core.Set(options.Settings...)
		c.Cores[i] = core
	}
	for i := range c.Edges {
		edge := NewEdge(tb, c.withKeys(files, "reader"), "http://"+c.cores, c.Cores[0].Setting("CORE_EDGE_SECRETS"))
		edge.Set(
			"EDGE_OBJECTS_ENDPOINT="+balanced, "EDGE_TRUSTED_PROXIES=127.0.0.1/32",
			"EDGE_API_UPSTREAM=http://"+c.Cores[i%len(c.Cores)].Setting("CORE_LISTEN"),
		)
		edge.Set(options.Settings...)
		c.Edges[i] = edge
	}
	c.startBalancer()
	for _, p := range slices.Concat(c.Cores[:], c.Edges[:]) {
		p.Start(tb)
	}
	c.AwaitHealthy()
	if options.Prometheus != "" {
		c.startPrometheus()
	}
	return c
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
func (c *Cluster) Directory(name string) string {
	return makeDirectory(c, 0o755, c.directory, name)
}

// newProgram returns a program with a directory of its own; its log is beside that.
func (c *Cluster) newProgram(name, path string) *Program {
	resolved, err := exec.LookPath(path)
	if err != nil {
		testenv.Skip(c, path+" is missing; make cluster installs it")
	}
	resolved = testenv.Must(filepath.Abs(resolved))(c)
	directory := makeDirectory(c, 0o700, c.directory, name)
	return &Program{
		name: name, command: []string{resolved}, directory: directory, log: directory + ".log", stopSignal: syscall.SIGKILL,
		environ: []string{"LC_ALL=C.UTF-8", "HOME=" + directory, "PATH=" + os.Getenv("PATH")},
	}
}

// startStores starts a MinIO of four nodes with erasure coding, which needs any two of them,
// prepares it as deploy does, and returns its configuration.
func (c *Cluster) startStores() ObjectStore {
	if c.options.MinIO == "" {
		return ObjectStore{URL: "file://" + filepath.Join(c.directory, "textures")}
	}
	const nodes = 4
	var volumes []string
	var all []*Program
	for i := range nodes {
		p, address := c.newProgram(fmt.Sprintf("minio-%d", i+1), c.options.MinIO), FreeAddress(c)
		all, c.stores = append(all, p), append(c.stores, address)
		volumes = append(volumes, "http://"+address+filepath.Join(p.directory, "data"))
	}
	for i, p := range all {
		node := newMinIO(p.name, p.command[0], p.directory, c.stores[i])
		p.command = slices.Concat(node.command, volumes)
		p.environ = slices.Concat(node.environ, []string{
			"MINIO_PROMETHEUS_AUTH_TYPE=public", "MINIO_ROOT_USER=" + c.keys.hex(c, "s3_access_key", 10), "MINIO_ROOT_PASSWORD=" + c.keys.hex(c, "s3_secret_key", 10),
			"MINIO_CI_CD=1",                      // else it rejects four disks that are one
			"_MINIO_SERVER_LOCAL=" + c.stores[i], // else, in a container, it waits until it is not on loopback
		})
		p.Start(c)
		c.Stores = append(c.Stores, p)
	}
	for i, p := range all {
		p.await(c, "is ready", func() bool { return c.isOK("http://" + c.stores[i] + "/minio/health/cluster") })
	}
	prepareMinIO(c, c.options.RepoRoot, "http://"+c.stores[0], c.keys, c.options.MC)
	return ObjectStore{URL: "s3://veneer", Endpoint: "http://" + c.stores[0]}
}

// withKeys returns the configuration of a store with the keys of a role.
func (c *Cluster) withKeys(files ObjectStore, role string) ObjectStore {
	if files.Endpoint != "" {
		files.AccessKey, files.SecretKey = c.keys.hex(c, "s3_"+role+"_access_key", 10), c.keys.hex(c, "s3_"+role+"_secret_key", 20)
	}
	return files
}

// isOK reports whether a URL responds with 200.
func (c *Cluster) isOK(url string) bool {
	status, _ := ask(c, c.client, http.MethodGet, url)
	return status == http.StatusOK
}

// AwaitHealthy waits until every component works again.
func (c *Cluster) AwaitHealthy() {
	for _, p := range append(c.Cores[:], c.Edges[:]...) {
		p.AwaitReady(c)
	}
	for _, address := range c.etcd {
		await(c, "etcd at "+address+" has a leader", func() bool { return c.isOK("http://" + address + "/health") })
	}
	if len(c.Nodes) > 0 {
		await(c, "both standbys follow a primary", func() bool { return c.hasStandbys() })
	}
	for _, address := range c.stores {
		await(c, "MinIO at "+address+" accepts writes", func() bool { return c.acceptsWrites(address) })
	}
	await(c, "the balancer considers all servers up", func() bool { return c.balancerHealthy() })
}

// AwaitRedundant waits until each MinIO node has reported for so long, without interruption, that
// the others can do without it.
func (c *Cluster) AwaitRedundant(duration time.Duration) {
	since := time.Now()
	await(c, "each MinIO node is redundant", func() bool {
		for _, address := range c.stores {
			if !c.isOK("http://" + address + "/minio/health/cluster?maintenance=true") {
				since = time.Now()
				return false
			}
		}
		return time.Since(since) >= duration
	})
}

// acceptsWrites reports whether a MinIO node stores an object, and deletes it. For some seconds after
// its start a node may report that it is healthy and reject writes.
func (c *Cluster) acceptsWrites(address string) bool {
	const bucket, name = "veneer", "a-write-of-the-harness"
	role := c.withKeys(ObjectStore{Endpoint: address}, "writer")
	node := testenv.Must(minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(role.AccessKey, role.SecretKey, ""), Region: "us-east-1", MaxRetries: 1,
	}))(c)
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	_, err := node.PutObject(ctx, bucket, name, strings.NewReader(address), int64(len(address)), minio.PutObjectOptions{})
	return err == nil && node.RemoveObject(ctx, bucket, name, minio.RemoveObjectOptions{}) == nil
}

// Describe prints the addresses and processes of the cluster.
func (c *Cluster) Describe(out io.Writer) {
	fmt.Fprintf(out, "\nThe cluster runs. Ctrl-C stops it and deletes its data.\n\n  the site     http://%s\n  the balancer http://%s\n", c.Address, c.stats)
	for i, p := range c.Cores {
		fmt.Fprintf(out, "  core %d       http://%s, operators http://%s, process %d\n", i+1, p.Setting("CORE_LISTEN"), p.Setting("CORE_OPS_LISTEN"), p.PID())
	}
	for i, p := range c.Edges {
		fmt.Fprintf(out, "  edge %d       http://%s, operators http://%s, process %d\n", i+1, p.Setting("EDGE_LISTEN"), p.Setting("EDGE_OPS_LISTEN"), p.PID())
	}
	for _, n := range c.Nodes {
		fmt.Fprintf(out, "  %s   %s, Patroni http://%s, process %d\n", n.Name, n.URL(), n.patroniAddress, n.PID())
	}
	for i, address := range c.stores {
		fmt.Fprintf(out, "  minio-%d      http://%s\n", i+1, address)
	}
	if c.Prometheus != nil {
		fmt.Fprintf(out, "  Prometheus   http://%s/alerts\n", c.prometheus)
	}
	fmt.Fprintf(out, "  etcd         %s\n  logs         %s\n\n", strings.Join(c.etcd, ", "), filepath.Join(c.directory, "*.log"))
}
