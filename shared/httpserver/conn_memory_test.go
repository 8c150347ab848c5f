//go:build !race

package httpserver_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A connection takes no more memory than the help of MAX_CONNECTIONS says, whatever its
// client does. Operators choose a program's memory by that figure.
//
// Each state is measured in a process of its own, without the leftovers of other tests and
// states.
func TestConnectionMemory(t *testing.T) { //nolint:paralleltest // it runs alone in its processes
	const variable = "TEST_MEMORY_OF" // names the state that this process measures
	const get = "GET / HTTP/1.1\r\nHost: veneer.test\r\n"
	const post = "POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 1000000\r\n\r\n"
	for _, test := range []struct {
		state    string
		sent     string
		answered bool
		most     int64 // KiB
		overTLS  int64
	}{
		{"new", "", false, 30, 52},
		{"idle behind a request", get + "\r\n", true, 30, 52},
		{"with half of a head of 16 KiB", get + "X-Long: " + strings.Repeat("x", 12_000), false, 30, 116},
		{"with the head of a body", post, false, 30, 116},
		{"with 8 KiB of a body", post + strings.Repeat("x", 8192), false, 48, 116},
		{"with a whole head of 16 KiB and 8 KiB of a body", "POST / HTTP/1.1\r\nHost: veneer.test\r\nX-Long: " + strings.Repeat("x", 16_000) + "\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 8192), false, 80, 116},
	} {
		for _, secure := range []bool{false, true} {
			state := fmt.Sprintf("%s, TLS %t", test.state, secure)
			if measured := os.Getenv(variable); measured != "" {
				if measured == state {
					fmt.Println(connectionMemory(t, test.sent, test.answered, secure)) //nolint:forbidigo // for the parent process
				}
				continue
			}
			took := measure(t, variable+"="+state)
			t.Logf("%s: %.1f KiB", state, float64(took)/1024)
			most := test.most << 10
			if secure {
				most = test.overTLS << 10
			}
			testenv.Check(t, took <= most, "%s: a connection takes %d bytes; want at most %d", state, took, most)
		}
	}
}

// measure runs this test alone in another process, and returns what it prints.
func measure(t *testing.T, environ string) (bytes int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), environ)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := fmt.Sscan(string(out), &bytes); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bytes
}

func connectionMemory(t *testing.T, sent string, answered, secure bool) int64 {
	t.Helper()
	const conns = 200
	bounds := limitsWith(func(l *httpserver.Limits) { l.MaxConnections, l.HeaderBytes = 2*conns, 16<<10 })
	opts := httpserver.Options{Log: silent(), Limits: bounds}
	server := opts.NewServer(bodyHandler(opts, 1<<20, 0, func(rc *fasthttp.RequestCtx) { rc.SetBodyString("done") }))
	l := httpserver.Listener{Server: server}
	if secure {
		l.TLS = serverTLS(t)
	}
	address := serveOn(t, l).Addr().String()
	before := inUse()
	for range conns {
		conn := send(t, address, "")
		if secure { // the memory of the client's end is garbage collected
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		testenv.Must(io.WriteString(conn, sent))(t)
		if answered {
			testenv.Must(io.ReadFull(conn, make([]byte, 12)))(t)
		}
	}
	// The server reads what has arrived within moments; before that it uses less.
	most := int64(0)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 5 {
		most = max(most, inUse()-before)
		<-tick.C
	}
	return most / conns
}

// inUse returns the bytes of heap and stacks in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}
