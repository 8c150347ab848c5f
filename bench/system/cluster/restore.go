package cluster

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// Backup makes a base backup of the database, replacing an older one.
func (c *Cluster) Backup(tb testing.TB) {
	tb.Helper()
	first := c.Nodes[0]
	if err := os.RemoveAll(first.backup()); err != nil {
		tb.Fatal(err)
	}
	for _, n := range c.Nodes {
		if n.Name != c.Primary() {
			continue
		}
		host, port, _ := net.SplitHostPort(n.Address)
		command := exec.CommandContext(tb.Context(), filepath.Join(stack.PostgresPrograms(tb), "pg_basebackup"),
			"-D", first.backup(), "-h", host, "-p", port, "-U", "postgres", "--checkpoint=fast", "--wal-method=stream")
		command.Dir, command.SysProcAttr = first.directory, first.owner
		if output, err := command.CombinedOutput(); err != nil {
			tb.Fatalf("pg_basebackup: %v\n%s", err, output)
		}
		return
	}
	tb.Fatal("there is no primary")
}

func (n *Node) backup() string { return filepath.Join(n.directory, "backup") }

// Restore restores the backup on the first node and has the others follow it, as backup.md does
// with Patroni; cores are stopped meanwhile. All later writes are lost, and all sessions have
// ended.
func (c *Cluster) Restore(tb testing.TB) {
	tb.Helper()
	for _, core := range c.Cores {
		if err := core.Stop(tb); err != nil {
			tb.Fatal(err)
		}
	}
	for _, n := range c.Nodes {
		n.Kill(tb)
	}
	// Patroni must not elect the former primary, or the node with the most WAL.
	c.clearEtcd(tb)
	for _, n := range c.Nodes {
		if err := os.RemoveAll(n.data); err != nil {
			tb.Fatal(err)
		}
	}
	first := c.Nodes[0]
	if err := os.Rename(first.backup(), first.data); err != nil {
		tb.Fatal(err)
	}
	first.Start(tb)
	first.await(tb, "is the primary", func() bool { return c.Primary() == first.Name })
	for _, n := range c.Nodes[1:] {
		n.Start(tb)
	}
	await(tb, "both standbys follow", func() bool { return c.hasStandbys(tb) })
	sql, err := os.ReadFile(filepath.Join(c.options.RepoRoot, "deploy/restored.sql"))
	if err != nil {
		tb.Fatal(err)
	}
	conn := c.Conn(tb)
	_, err = conn.Exec(tb.Context(), string(sql))
	_ = conn.Close(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	c.Cores[0].Run(tb, "migrate")
	for _, core := range c.Cores {
		core.Start(tb)
	}
}

// clearEtcd deletes everything that Patroni stores in etcd, as patronictl remove does.
func (c *Cluster) clearEtcd(tb testing.TB) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodDelete, "http://"+c.etcd[0]+etcdPath+"?recursive=true", http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("etcd answers %s", response.Status)
	}
}
