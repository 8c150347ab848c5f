package postgres_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// blackHole passes connections on to a server. Those that are open when it is
// told to swallow stay open, and nothing passes over them any more.
type blackHole struct {
	address string
	age     atomic.Int64 // connections of another age are dead
}

func openBlackHole(t *testing.T, target string) *blackHole {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &blackHole{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			age := b.age.Load()
			go b.pass(server, client, age)
			go b.pass(client, server, age)
		}
	}()
	return b
}

func (b *blackHole) pass(to, from net.Conn, age int64) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err == nil && b.age.Load() == age {
			_, err = io.Writer(to).Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (b *blackHole) swallow() { b.age.Add(1) }

// Connections that died without a word while nobody used them cost a second, not
// all the time that a request has.
func TestDeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	hole := openBlackHole(t, address.Host)
	address.Host = hole.address
	db := postgrestest.Connect(t, address.String())
	if _, err := db.Mappings(t.Context(), []mapping.Key{"tid:1"}); err != nil {
		t.Fatal(err)
	}

	hole.swallow()
	<-time.After(1100 * time.Millisecond) // what was used in the last second is not tried first
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := db.Mappings(ctx, []mapping.Key{"tid:1"}); err != nil {
		t.Errorf("over a connection that is dead: %v; want another connection", err)
	}
}
