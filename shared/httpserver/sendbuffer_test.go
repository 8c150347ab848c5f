package httpserver_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The send buffers of clients that read nothing stay small, and their connections end by
// WRITE_TIMEOUT.
func TestSendBufferOfUnreadResponses(t *testing.T) {
	t.Parallel()
	const (
		conns = 50
		// most is what Linux reserves for a connection, twice 64 KiB, and the FIN.
		most = 128<<10 + 1
	)
	bounds := limitsWith(func(l *httpserver.Limits) { l.WriteTimeout = time.Second })
	opts := httpserver.Options{Log: silent(), Limits: bounds}
	large := make([]byte, 1_400_000) // as of the largest pictures
	server := opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.Response.SetBodyRaw(large) })
	var closed atomic.Int64
	server.ConnState = func(_ net.Conn, state fasthttp.ConnState) {
		if state == fasthttp.StateClosed {
			closed.Add(1)
		}
	}
	address := serveTCP(t, server)
	for range conns {
		conn, _ := send(t, address, "").(*net.TCPConn)
		testenv.Do(t, conn.SetReadBuffer(4096))
		testenv.Must(conn.Write([]byte(get)))(t)
	}
	unsentBytes := 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); closed.Load() < conns; <-tick.C {
		for _, n := range unsent(t, address) {
			unsentBytes = max(unsentBytes, n)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are closed; want %d", closed.Load(), conns)
		}
	}
	testenv.Check(t, unsentBytes != 0 && unsentBytes <= most,
		"up to %d bytes of a connection are in its send buffer; want at most %d", unsentBytes, most)
}

// unsent returns the bytes in the send buffer of each connection of a listener.
func unsent(t *testing.T, address string) (all []int) {
	t.Helper()
	listener := testenv.Must(net.ResolveTCPAddr("tcp", address))(t)
	table := testenv.Must(os.Open("/proc/net/tcp"))(t)
	defer func() { _ = table.Close() }()
	local := fmt.Sprintf("0100007F:%04X", listener.Port)
	const listening = "0A"
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[1] != local || fields[3] == listening {
			continue
		}
		var n int
		testenv.Must(fmt.Sscanf(fields[4], "%x:", &n))(t)
		all = append(all, n)
	}
	return all
}
