package stack

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Run runs Veneer on this machine until the test's context ends: PostgreSQL, the object store, core
// and one edge. Their data stay in .dev for the next run. OBJECTS selects the object store, and
// DEV_PORTS is the first of other ports than usual.
func (l *Local) Run() {
	l.state, l.keys = l.dev, secrets(filepath.Join(l.dev, "secrets"))
	l.lockRun()
	objects := cmp.Or(os.Getenv("OBJECTS"), "file")
	if objects != "file" && objects != "minio" {
		l.Fatalf("OBJECTS=%s is neither file nor minio", objects)
	}
	at := choosePorts(l, os.Getenv("DEV_PORTS"), objects)
	l.address.postgres, l.address.minio = at["postgres"], at["minio"]
	l.script("build")
	l.startPostgres(filepath.Join(l.dev, "postgres"), "scram-sha-256",
		"shared_buffers=512MB", "effective_cache_size=1536MB", "autovacuum_naptime=10s") // as docker compose

	core, edge := l.newSite(at, "veneer_"+objects)
	switch objects {
	case "file":
		store := url.URL{Scheme: "file", Path: makeDirectory(l, 0o755, l.dev, "textures")}
		core.Set("CORE_OBJECTS_URL=" + store.String())
		edge.Set("EDGE_OBJECTS_URL=" + store.String())
	case "minio":
		l.startMinIO(filepath.Join(l.dev, "minio"), "mc")
		endpoint := "http://" + at["minio"]
		l.step("preparing MinIO", func() { prepareMinIO(l, l.root, endpoint, l.keys, filepath.Join(l.dev, "bin/mc")) })
		for _, p := range []struct {
			process      *Process
			prefix, role string
		}{{core, "CORE_OBJECTS_", "writer"}, {edge, "EDGE_OBJECTS_", "reader"}} {
			p.process.Set(
				p.prefix+"URL=s3://veneer", p.prefix+"ENDPOINT="+endpoint,
				p.prefix+"ACCESS_KEY_FILE="+l.keys.path("s3_"+p.role+"_access_key"),
				p.prefix+"SECRET_KEY_FILE="+l.keys.path("s3_"+p.role+"_secret_key"),
			)
		}
	}
	l.step("migrating the database", func() { core.Run(l, "migrate") })
	for _, p := range []*Process{core, edge} {
		l.step("starting "+p.name, func() { p.StartReady(l) })
	}
	_, _ = fmt.Fprintf(l.out, announcement, at["edge"], at["core"], at["core-operators"], at["edge-operators"], filepath.Join(l.state, "logs"))
	l.follow(core, edge)
}

const announcement = `
Veneer is running. Ctrl-C stops it.

  everything   http://%[1]s
  the console  http://%[1]s/console/
  core alone   http://%[2]s
  the API      http://%[1]s/api/docs
  launchers    http://%[1]s/api/yggdrasil/
  a picture    http://%[1]s/avatar/player/Demo?png&3d
  log-in       demo@example.com, demo-password
  operators    http://%[3]s and http://%[4]s (/readyz, /metrics)
  logs         %[5]s

`

// newSite returns core and an edge, which have not started, without an object store. Secrets are
// passed as files: an environment is too easily read.
func (l *Local) newSite(at map[string]string, database string) (core, edge *Process) {
	core, edge = newProcess("core", filepath.Join(l.dev, "bin/core")), newProcess("edge", filepath.Join(l.dev, "bin/edge"))
	core.environ, edge.environ = os.Environ(), os.Environ()
	l.supervise("core", &core.Program)
	l.supervise("edge", &edge.Program)
	l.keys.make(l, "token_keys", func() string { return "key1:" + base64.StdEncoding.EncodeToString(random(32)) })
	l.keys.hex(l, "edge_secrets", 32)
	l.keys.make(l, "yggdrasil_key", func() string { return core.Run(l, "keys", "yggdrasil") })
	_ = os.Remove(l.keys.path("database_url"))
	l.keys.make(l, "database_url", func() string { return l.databaseURL(database) })
	core.Set(
		"CORE_LISTEN="+at["core"],
		"CORE_EDGES_LISTEN="+at["core-edges"],
		"CORE_OPS_LISTEN="+at["core-operators"],
		"CORE_DATABASE_URL_FILE="+l.keys.path("database_url"),
		"CORE_TOKEN_KEYS_FILE="+l.keys.path("token_keys"),
		"CORE_EDGE_SECRETS_FILE="+l.keys.path("edge_secrets"),
		"CORE_PUBLIC_URL=http://"+at["edge"],
		"CORE_YGGDRASIL_KEY_FILE="+l.keys.path("yggdrasil_key"),
		"CORE_TRUSTED_PROXIES=127.0.0.1/32", // the edge, which forwards /api
		"CORE_DEMO=1",
		"CORE_LOG_FORMAT=text",
		// No rate limits in development.
		"CORE_LIMIT_REQUESTS=0",
		"CORE_LIMIT_REGISTRATIONS=0",
		"CORE_LIMIT_UPLOADS=0",
		"CORE_LIMIT_PRICES=0",
		"CORE_LIMIT_CHANGES=0",
	)
	edge.Set(
		"EDGE_LISTEN="+at["edge"],
		"EDGE_OPS_LISTEN="+at["edge-operators"],
		"EDGE_CORE_URL=http://"+at["core-edges"],
		"EDGE_CORE_SECRETS_FILE="+l.keys.path("edge_secrets"),
		"EDGE_API_UPSTREAM=http://"+at["core"],
		"EDGE_YGGDRASIL_URL=/api/yggdrasil/",
		"EDGE_EXAMPLE_PLAYER=Demo",
		"EDGE_LOG_FORMAT=text",
	)
	return core, edge
}

// listeners are what listens in make run, in the order of DEV_PORTS, with their usual ports.
var listeners = []struct {
	name string
	port int
}{
	{"edge", 8081},
	{"core", 8080},
	{"edge-operators", 9081},
	{"core-operators", 9080},
	{"core-edges", 9090},
	{"postgres", 15432},
	{"minio", 19000},
}

// choosePorts returns the addresses by listener, at the usual ports or from a first one on. The test
// fails if one is taken.
func choosePorts(tb testing.TB, first, objects string) map[string]string {
	tb.Helper()
	next, err := strconv.ParseUint(first, 10, 16)
	if first != "" && (err != nil || next == 0 || first[0] == '0' || int(next)+len(listeners) > 1<<16) {
		tb.Fatalf("DEV_PORTS=%s is not the first of %d ports up to 65535; a right value is DEV_PORTS=21000", first, len(listeners))
	}
	addresses, taken := map[string]string{}, ""
	for i, l := range listeners {
		port := l.port
		if first != "" {
			port = int(next) + i
		}
		addresses[l.name] = fmt.Sprintf("127.0.0.1:%d", port)
		if (l.name != "minio" || objects == "minio") && listens(port) {
			taken += fmt.Sprintf("%d (%s)%s; ", port, strings.Replace(l.name, "-", ", ", 1), listener(tb, port))
		}
	}
	if taken != "" {
		tb.Fatalf("ports are taken: %sfree them, or move all to others, as in make run DEV_PORTS=21000", taken)
	}
	return addresses
}

// followLog prints what a program logs from now on, after its name, until it ends.
const followLog = `tail --lines=0 --follow --pid="$1" -- "$2" | sed --unbuffered "s/^/$0 | /"`

// follow prints what programs log from now on, until the test's context ends. It fails if a program
// ends before.
func (l *Local) follow(programs ...*Process) {
	for _, p := range programs {
		log := exec.CommandContext(l.Context(), "sh", "-c", followLog, p.name, strconv.Itoa(p.PID()), p.log)
		log.Stdout = l.out
		testenv.Do(l, log.Start())
	}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-l.Context().Done():
			_, _ = fmt.Fprintln(l.out, "\n==> stopping")
			return
		}
		if i := slices.IndexFunc(l.started, (*Program).hasEnded); i >= 0 {
			l.started[i].fail(l, "ended by itself, with "+l.started[i].running.ProcessState.String())
		}
	}
}
