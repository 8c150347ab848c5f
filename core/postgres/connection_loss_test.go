package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// startProxy accepts connections until the test ends, and calls handle with each and its
// connection to the target.
func startProxy(t *testing.T, target string, handle func(client, server net.Conn)) (address string) {
	t.Helper()
	listener := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
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
			handle(client, server)
		}
	}()
	return listener.Addr().String()
}

// blackholeProxy forwards connections to a server. After cut, open and new connections stay
// open, but forward nothing any more. After restore, new connections work.
type blackholeProxy struct {
	generation atomic.Int64 // connections of an older or an odd generation forward nothing
}

func (p *blackholeProxy) forward(to, from net.Conn, generation int64) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err == nil && generation%2 == 0 && p.generation.Load() == generation {
			_, err = io.Writer(to).Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (p *blackholeProxy) cut()     { p.generation.Add(1) }
func (p *blackholeProxy) restore() { p.generation.Add(1) }

// openBehindProxy returns a database that is reached through a blackholeProxy.
func openBehindProxy(t *testing.T) (store, *blackholeProxy) {
	t.Helper()
	address := must(url.Parse(postgrestest.URL(t)))(t)
	proxy := &blackholeProxy{}
	address.Host = startProxy(t, address.Host, func(client, server net.Conn) {
		generation := proxy.generation.Load()
		go proxy.forward(server, client, generation)
		go proxy.forward(client, server, generation)
	})
	query := address.Query()
	query.Del("connect_timeout") // the default is under test
	address.RawQuery = query.Encode()
	return openAt(t, address.String()), proxy
}

// Idle connections that died without a TCP reset delay a look-up only briefly.
func TestDeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	db, proxy := openBehindProxy(t)
	must(db.AcquireAll(t.Context()))(t)

	proxy.cut()
	proxy.restore()
	<-time.After(1100 * time.Millisecond) // connections used in the last second are not pinged
	testenv.Is(t, errOf(db.Mappings(t.Context(), []edgeproto.Key{"tid:1"})), nil, "a look-up with dead connections")
}

// After a network cut without TCP resets, statements in progress fail, and so do those until
// the network is restored, but hardly any later: the pool does not wait for cleaning up dead
// connections. Connections used in the last second are not pinged before reuse.
func TestRecoversAfterNetworkCut(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	type workload struct {
		name  string
		bound time.Duration // look-ups also have a shorter one of their own
		kind  fault.Kind    // of the error after that
		run   func(ctx context.Context, db store) error
	}
	workloads := []workload{
		{"look-ups", 10 * time.Second, fault.Unavailable, func(ctx context.Context, db store) error {
			return errOf(db.Mappings(ctx, []edgeproto.Key{"tid:1"}))
		}},
		{"reads", 1500 * time.Millisecond, fault.Internal, func(ctx context.Context, db store) error { return errOf(db.MostLiked(ctx, 1)) }},
		{"writes", 1500 * time.Millisecond, fault.Internal, func(ctx context.Context, db store) error {
			return errOf(db.TrimNotifications(ctx, time.Unix(0, 0)))
		}},
		{"numbering of changes", 1500 * time.Millisecond, fault.Internal, func(ctx context.Context, db store) error { return errOf(db.NumberChanges(ctx)) }},
	}
	for _, test := range []struct {
		name  string
		times int // that each statement runs during the cut
	}{
		{"existing connections", 1},
		{"existing and new connections", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db, proxy := openBehindProxy(t)
			connections := must(db.AcquireAll(t.Context()))(t)
			run := func(w workload) (took time.Duration, err error) {
				ctx, cancel := context.WithTimeout(t.Context(), w.bound)
				defer cancel()
				began := time.Now()
				err = w.run(ctx, db)
				return time.Since(began), err
			}

			proxy.cut()
			for range test.times {
				var done sync.WaitGroup
				for _, w := range workloads {
					for range connections {
						done.Go(func() {
							took, err := run(w)
							testenv.Check(t, err != nil && fault.KindOf(err) == w.kind && took <= 3*time.Second,
								"%s during the cut: %v, after %v; want %v within two seconds", w.name, err, took, w.kind)
						})
					}
				}
				done.Wait()
			}

			proxy.restore()
			restored := time.Now()
			var done sync.WaitGroup
			for _, w := range workloads {
				done.Go(func() {
					_, err := run(w)
					for err != nil && time.Since(restored) < time.Minute {
						_, err = run(w)
					}
					took := time.Since(restored)
					if t.Logf("%s work %v after the network was restored", w.name, took); err != nil || took > 4*time.Second {
						t.Errorf("%s work %v after the network was restored, %v; want at most four seconds", w.name, took, err)
					}
				})
			}
			done.Wait()
		})
	}
}

// Reads are retried after the server has closed all connections, as it does when it stops.
func TestReadsSurviveConnectionLoss(t *testing.T) {
	t.Parallel()
	db := open(t)
	user := addUser(t, db, "Ann").ID
	connections := must(db.AcquireAll(t.Context()))(t)
	endSessions(t, db, connections)
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			token := core.Token{User: user, Session: uuid.New(), ID: uuid.New(), IssuedAt: time.Now()}
			testenv.Is(t, errOf(lookUp(t.Context(), db, token)), core.ErrSignedOut, "an unknown session")
			testenv.Is(t, errOf(db.Mappings(t.Context(), []edgeproto.Key{"tid:1"})), nil, "an edge's look-up")
			testenv.Is(t, errOf(db.Reports(t.Context(), core.ReportQuery{PerPage: 1, Page: 1})), nil, "a list")
		})
	}
	group.Wait()
}

// endSessions terminates all sessions of a database except the test's own.
func endSessions(t *testing.T, db store, atLeast int) {
	t.Helper()
	rows, _ := db.conn().Query(t.Context(), "SELECT CASE WHEN pg_terminate_backend(pid) THEN pid ELSE 0 END FROM pg_stat_activity WHERE application_name = current_database()") // CollectRows reports the error
	ended := must(pgx.CollectRows(rows, pgx.RowTo[int32]))(t)
	if len(ended) < atLeast {
		t.Fatalf("%d sessions were ended; want at least %d", len(ended), atLeast)
	}
	// Termination takes a moment, in which new connections may be made.
	for left := 1; left > 0; {
		do(t, db.conn().QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1)", ended).Scan(&left))
	}
}

// Writes are retried after the server has closed all connections, whether they were not yet
// sent or waiting for a lock, and are done exactly once.
func TestWritesSurviveConnectionLoss(t *testing.T) {
	t.Parallel()
	for _, waiting := range []bool{false, true} {
		t.Run(fmt.Sprintf("waiting: %t", waiting), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			ann := addUser(t, db, "Ann")
			admin := addAdministrator(t, db, "Root", core.Administrator)
			hat := addTexture(t, db, texture(ann.ID, skin.Classic, "hat", true))
			writes := map[string]func() error{
				"one batch": func() error { return errOf(db.CreatePlayer(t.Context(), ann.ID, player("Steve"), core.Pricing{})) },
				"one statement": func() error {
					return errOf(db.Notify(t.Context(), core.Recipients{Audience: core.AllUsers}, core.Message{Title: "Title", Content: "Content"}))
				},
				"a statement without rows": func() error { return db.QueueReset(t.Context(), ann.Email, casefold.Key(ann.Email)) },
				"an action":                func() error { return errOf(db.SetNickname(t.Context(), admin, ann.ID, "Anna")) },
				"a transaction":            func() error { return db.DeleteTexture(t.Context(), anyOwner, hat.ID, false) },
				"an upload": func() error {
					return errOf(db.AddTexture(t.Context(), texture(ann.ID, skin.Classic, "coat", true), core.Pricing{}, putOK))
				},
			}
			connections := must(db.AcquireAll(t.Context()))(t)
			var other lockTx
			if waiting {
				other = db.begin(t)
				other.exec(t, "LOCK TABLE users, players, textures, messages, mails IN SHARE MODE")
			} else {
				endSessions(t, db, connections)
			}
			var writing sync.WaitGroup
			for name, write := range writes {
				writing.Go(func() { testenv.Is(t, write(), nil, "%s", name) })
			}
			if waiting {
				other.waitBlocked(t, len(writes))
				endSessions(t, db, len(writes))
				do(t, other.Rollback(t.Context()))
			}
			writing.Wait()
			for what, want := range map[string]int{
				"players": 1, "messages": 1, "mails": 1, "audit_log": 1, "textures WHERE name = 'coat'": 1, "textures WHERE name = 'hat'": 0,
			} {
				db.hasCount(t, want, "SELECT count(*) FROM "+what)
			}
		})
	}
}

// newResponseDropper returns the address of a proxy to a server. Once a client has sent the
// marker, it drops the response and closes both connections.
func newResponseDropper(t *testing.T, target, marker string) (address string) {
	t.Helper()
	return startProxy(t, target, func(client, server net.Conn) {
		var dropping atomic.Bool
		closeBoth := func() { _, _ = client.Close(), server.Close() }
		go func() {
			defer closeBoth()
			buffer := make([]byte, 1<<16)
			for {
				n, err := client.Read(buffer)
				if bytes.Contains(buffer[:n], []byte(marker)) {
					dropping.Store(true)
				}
				if _, failed := server.Write(buffer[:n]); err != nil || failed != nil {
					return
				}
			}
		}()
		go func() {
			defer closeBoth()
			var dropped []byte
			buffer := make([]byte, 1<<16)
			for {
				n, err := server.Read(buffer)
				if dropping.Load() {
					dropped = append(dropped, buffer[:n]...)
					if err != nil || bytes.HasSuffix(dropped, []byte("Z\x00\x00\x00\x05I")) { // ReadyForQuery, outside a transaction
						return
					}
					continue
				}
				if err != nil {
					return
				}
				if _, err := client.Write(buffer[:n]); err != nil {
					return
				}
			}
		}()
	})
}

// A committed write is not retried if its response was lost.
func TestWritesAreNotDoneTwice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, marker, count string
		write               func(db store, admin core.Actor, user core.UserID) error
	}{
		{"a statement", "To all users", "messages", func(db store, _ core.Actor, _ core.UserID) error {
			return errOf(db.Notify(t.Context(), core.Recipients{Audience: core.AllUsers}, core.Message{Title: "To all users", Content: "Content"}))
		}},
		{"a statement without rows", "lost@example.com", "mails", func(db store, _ core.Actor, _ core.UserID) error {
			return db.QueueReset(t.Context(), "lost@example.com", casefold.Key("lost@example.com"))
		}},
		{"a batch", "Lost", "players", func(db store, _ core.Actor, user core.UserID) error {
			return errOf(db.CreatePlayer(t.Context(), user, player("Lost"), core.Pricing{}))
		}},
		{"an upload", "coat", "textures", func(db store, _ core.Actor, user core.UserID) error {
			return errOf(db.AddTexture(t.Context(), texture(user, skin.Classic, "coat", true), core.Pricing{}, putOK))
		}},
		{"a transaction", "commit\x00", "audit_log", func(db store, admin core.Actor, user core.UserID) error {
			return errOf(db.SetNickname(t.Context(), admin, user, "Anna"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			root, ann := addAdministrator(t, db, "Root", core.Administrator), addUser(t, db, "Ann").ID
			proxied := must(url.Parse(db.address))(t)
			proxied.Host = newResponseDropper(t, proxied.Host, test.marker)
			wantKind(t, test.write(openAt(t, proxied.String()), root, ann), fault.Unavailable)
			db.hasCount(t, 1, "SELECT count(*) FROM "+test.count)
		})
	}
}

// Cancelling the context of a statement also cancels it at the server.
func TestStatementsAreCancelled(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(db.AcquireAll(t.Context()))(t)
	other := db.lock(t, "LOCK TABLE textures IN ACCESS EXCLUSIVE MODE")

	ctx, cancel := context.WithCancel(t.Context())
	done := start(func() error { return errOf(db.MostLiked(ctx, 1)) })
	other.waitBlocked(t, 1)
	cancel()
	testenv.Is(t, <-done, context.Canceled, "a statement with a cancelled context")
	testenv.Eventually(t, "no transaction waits for a lock", func() bool { return other.blocked(t) == 0 })
}
