package api_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// roundTrips counts round trips to PostgreSQL.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) count() int { return int(r.n.Load()) }

// countRoundTrips makes the servers of a site reach the database through a proxy that counts their
// round trips.
func (s testSite) countRoundTrips(t *testing.T) *roundTrips {
	t.Helper()
	config := testenv.Must(pgx.ParseConfig(s.URL))(t)
	network := "tcp"
	address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if strings.HasPrefix(config.Host, "/") {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	counter := new(roundTrips)
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { counter.relay(t, conn, network, address) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		sessions.Wait()
	})

	parsed := testenv.Must(url.Parse(s.URL))(t)
	parsed.Host = listener.Addr().String()
	query := parsed.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable") // the proxy parses the messages
	parsed.RawQuery = query.Encode()
	s.URL = parsed.String()
	return counter
}

// relay copies the messages of a connection in both directions.
func (r *roundTrips) relay(t *testing.T, client net.Conn, network, address string) {
	t.Helper()
	defer func() { _ = client.Close() }()
	server, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = server.Close() }()
	var requests sync.WaitGroup
	defer requests.Wait()
	requests.Go(func() {
		_, _ = io.Copy(server, client) // until either side closes
		_ = server.Close()
	})
	_ = r.copyMessages(client, bufio.NewReader(server)) // likewise
	_ = client.Close()
}

// copyMessages copies the database's messages: a type byte, a length that includes itself, and the
// content. ReadyForQuery ends a round trip. The pool's ping of a connection that was idle for a
// second is a round trip, too, and is not counted: it follows EmptyQueryResponse.
func (r *roundTrips) copyMessages(client io.Writer, server *bufio.Reader) error {
	var last byte
	for {
		header, err := server.Peek(5)
		if err != nil {
			return err
		}
		kind, size := header[0], int64(binary.BigEndian.Uint32(header[1:]))+1
		if kind == 'Z' && last != 'I' {
			r.n.Add(1) // before the client sees it
		}
		last = kind
		if _, err := io.CopyN(client, server, size); err != nil {
			return err
		}
	}
}

// A read of a signed-in user takes one round trip to PostgreSQL. A write takes two: the look-up of
// the session, and the transaction. An upload takes one more before its file is stored, and a
// request with a password one more to count the attempt.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	s := newSite(t, "LIMIT_REQUESTS=0")
	trips := s.countRoundTrips(t)
	c := s.serve(t).signUp(t)
	other := c.signUp(t)
	for _, c := range []client{c, other} {
		c.withPassword(t, rightPassword)
	}
	for range 2 {
		testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "Title", "Content"))(t)
	}
	var notifications []struct{ ID string }
	testenv.Do(t, json.Unmarshal(c.Get(t, "/api/user/notifications").Body, &notifications))

	// Each request is sent twice and counted the second time: a connection prepares a statement
	// when it first runs it.
	f := func(what string, want int, do func(i int) response) {
		t.Helper()
		for i := range 2 {
			before := trips.count()
			a := do(i)
			got := trips.count() - before
			if a.Status >= 300 {
				t.Fatalf("%s: %d %s", what, a.Status, a.Body)
			}
			testenv.Check(t, i != 1 || got == want, "%s takes %d round trips; want %d", what, got, want)
		}
	}
	get := func(path string) func(int) response { return func(int) response { return c.Get(t, path) } }

	f("reading the user", 1, get("/api/user"))
	f("listing players", 1, get("/api/players"))
	f("listing an empty closet", 1, get("/api/closet"))
	f("listing notifications", 1, get("/api/user/notifications"))
	f("listing all notifications", 1, get("/api/notifications"))
	f("listing deleted players", 1, get("/api/deleted-players"))
	f("listing own reports", 1, get("/api/reports"))
	f("listing sessions", 1, get("/api/user/sessions"))

	f("reading a notification", 2, func(i int) response { return c.Post(t, "/api/user/notifications/"+notifications[i].ID, "") })
	f("renaming the user", 2, func(i int) response { return c.Put(t, "/api/user", fmt.Sprintf(`{"nickname":"Ann %d"}`, i)) })

	var pids, tids [2]string
	f("adding a player", 2, func(i int) response {
		a := c.Post(t, "/api/players", fmt.Sprintf(`{"name":"Steve_%d"}`, i))
		pids[i] = a.Field(t, "data", "pid")
		return a
	})
	f("renaming a player", 2, func(i int) response {
		return c.Put(t, "/api/players/"+pids[i]+"/name", fmt.Sprintf(`{"name":"Alex_%d"}`, i))
	})
	f("uploading", 3, func(i int) response {
		a := other.Send(t, "POST", "/api/textures", encodeMultipart(t, "name=A&type=skin", skinFile(t, byte(i+1))))
		tids[i] = a.Field(t, "data", "tid")
		return a
	})
	f("pricing an upload", 2, func(int) response { return c.price(t, "name=A&type=skin", skinFile(t, 3)) })
	f("reading a texture", 2, get("/api/textures/"+tids[0]))
	f("adding to the closet", 2, func(i int) response { return c.Post(t, "/api/closet", `{"tid":`+tids[i]+`,"name":"B"}`) })
	f("listing the closet", 1, get("/api/closet"))
	f("renaming in the closet", 2, func(i int) response { return c.Put(t, "/api/closet/"+tids[i], `{"name":"C"}`) })
	f("setting an avatar", 2, func(i int) response { return c.Put(t, "/api/user/avatar", `{"tid":`+tids[i]+`}`) })
	f("dressing a player", 2, func(i int) response { return c.Put(t, "/api/players/"+pids[i]+"/textures", `{"skin":`+tids[i]+`}`) })
	f("undressing a player", 2, func(i int) response { return c.Delete(t, "/api/players/"+pids[i]+"/textures?skin") })
	f("removing from the closet", 2, func(i int) response { return c.Delete(t, "/api/closet/"+tids[i]) })
	f("deleting a player", 2, func(i int) response { return c.Delete(t, "/api/players/"+pids[i]) })
	f("restoring a player", 2, func(i int) response { return c.Send(t, "POST", "/api/players/"+pids[i]+"/restore", body{}) })

	f("registering", 2, func(i int) response {
		return c.Post(t, "/api/auth/register", fmt.Sprintf(`{"email":"ann%d@example.com","password":"correct horse","nickname":"Ann"}`, i))
	})
	f("logging in", 2, func(int) response { return c.logIn(t, knownEmail, rightPassword) })
	f("refreshing", 1, func(int) response { return c.Send(t, "POST", "/api/auth/refresh", body{}) })
	leaving := [2]client{c.signInWith(t, rightPassword), c.signInWith(t, rightPassword)}
	f("logging out", 2, func(i int) response { return leaving[i].Send(t, "POST", "/api/auth/logout", body{}) })
	f("ending other sessions", 2, func(int) response { return c.Delete(t, "/api/user/sessions") })

	f("changing the e-mail address", 3, func(int) response {
		return c.Put(t, "/api/user/email", `{"email":"`+knownEmail+`","password":"`+rightPassword+`"}`)
	})
	f("changing the password", 3, func(int) response {
		return c.Put(t, "/api/user/password", `{"current_password":"`+rightPassword+`","new_password":"`+rightPassword+`"}`)
	})
	f("deleting the account", 3, func(i int) response {
		return []client{other, c}[i].Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+rightPassword+`"}`))
	})
}
