package api_test

import (
	"bytes"
	"context"
	"image"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
)

// startTwoNetworks starts a server and returns clients of two networks, neither signed in. Its
// connections to PostgreSQL have the schema as application_name, so that awaitLocks finds them.
func startTwoNetworks(t *testing.T, environ ...string) (hostile, honest client) {
	t.Helper()
	s := newSite(t, append(environ, "LIMIT_REQUESTS=0")...)
	parsed, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("application_name", query.Get("search_path"))
	parsed.RawQuery = query.Encode()
	s.url = parsed.String()
	c := s.serve(t)
	return c.from(t, "203.0.113.7"), c.from(t, "198.51.100.1")
}

// holdLock runs a statement in a transaction that keeps its locks until release is called. release
// also waits for the requests that flood has sent.
func (s *testSite) holdLock(t *testing.T, sql string, args ...any) (flood func(want int, requests ...func()), release func()) {
	t.Helper()
	tx, err := postgrestest.Conn(t, s.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
	var sent sync.WaitGroup
	// flood sends requests and returns once want statements wait for locks.
	flood = func(want int, requests ...func()) {
		t.Helper()
		for _, request := range requests {
			sent.Go(request)
		}
		s.awaitLocks(t, want)
	}
	return flood, sync.OnceFunc(func() {
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		sent.Wait()
	})
}

// awaitLocks waits until want statements of the site wait for locks.
func (s *testSite) awaitLocks(t *testing.T, want int) {
	t.Helper()
	conn := postgrestest.Conn(t, s.url)
	deadline := time.After(20 * time.Second)
	for {
		rows, _ := conn.Query(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_schema() AND cardinality(pg_blocking_pids(pid)) > 0")
		n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		if n >= want {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d statements wait for locks; want %d", n, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// respondsSoon checks the status of a response, and that it took at most 2 s.
func (c client) respondsSoon(t *testing.T, what string, want int, send func() response) {
	t.Helper()
	began := time.Now()
	a := send()
	if took := time.Since(began); a.status != want || took > 2*time.Second {
		t.Errorf("%s: %d %s after %s; want %d, soon", what, a.status, a.body, took.Round(time.Millisecond), want)
	}
}

// isOKOrUnavailable checks that a flooding request succeeded or was rejected with 503.
func (a response) isOKOrUnavailable(t *testing.T) {
	t.Helper()
	if a.status != 200 && a.status != 503 {
		t.Errorf("%s of a hostile client: %d %s", a.request, a.status, a.body)
	}
}

// Two hundred writes of one user that wait for one row leave connections to other users, of the
// same network too.
func TestWritesOfOneUserLeaveConnections(t *testing.T) {
	t.Parallel()
	hostile, honest := startTwoNetworks(t)
	neighbour := hostile.signUp(t)
	hostile, honest = hostile.signUp(t), honest.signUp(t)
	flood, release := hostile.site.holdLock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", hostile.uid)
	defer release()
	writes := make([]func(), 200)
	for i := range writes {
		writes[i] = func() { hostile.put(t, "/api/user", `{"nickname":"Hostile"}`).isOKOrUnavailable(t) }
	}
	flood(2, writes...)
	for range 3 {
		honest.respondsSoon(t, "a write in another network", 200, func() response { return honest.put(t, "/api/user", `{"nickname":"Honest"}`) })
		neighbour.respondsSoon(t, "a write of another user", 200, func() response { return neighbour.put(t, "/api/user", `{"nickname":"Neighbour"}`) })
		hostile.respondsSoon(t, "a read of the same user", 200, func() response { return hostile.get(t, "/api/user") })
	}
	release()
	hostile.respondsSoon(t, "a write of the same user afterwards", 200, func() response { return hostile.put(t, "/api/user", `{"nickname":"Late"}`) })
}

// Writes from any number of accounts of one network leave connections to other networks.
func TestWritesOfOneNetworkLeaveConnections(t *testing.T) {
	t.Parallel()
	hostile, honest := startTwoNetworks(t)
	honest = honest.signUp(t)
	tid := hostile.signUp(t).texture(t, "name=Steve&type=steve", skinFile(t, 1))
	flood, release := hostile.site.holdLock(t, "SELECT FROM textures WHERE tid = $1 FOR UPDATE", tid)
	defer release()
	var writes []func()
	for range 20 {
		account := hostile.signUp(t)
		writes = append(writes, func() { account.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`).isOKOrUnavailable(t) })
	}
	flood(6, writes...) // three quarters of the connections
	for range 3 {
		honest.respondsSoon(t, "a write in another network", 200, func() response { return honest.put(t, "/api/user", `{"nickname":"Honest"}`) })
	}
}

// Slow reads from one network leave connections to other networks.
func TestReadsOfOneNetworkLeaveConnections(t *testing.T) {
	t.Parallel()
	hostile, honest := startTwoNetworks(t)
	hostile, honest = hostile.signUp(t), honest.signUp(t)
	flood, release := hostile.site.holdLock(t, "LOCK TABLE score_changes IN ACCESS EXCLUSIVE MODE")
	defer release()
	reads := make([]func(), 100)
	for i := range reads {
		reads[i] = func() { hostile.get(t, "/api/user/score").isOKOrUnavailable(t) }
	}
	flood(3, reads...)
	for range 3 {
		honest.respondsSoon(t, "a list in another network", 200, func() response { return honest.get(t, "/api/players") })
		honest.respondsSoon(t, "a look at one's account in another network", 200, func() response { return honest.get(t, "/api/user") })
	}
}

// Uploads of one network that hang in the store leave capacity to other networks.
func TestUploadsOfOneNetworkLeaveCapacity(t *testing.T) {
	t.Parallel()
	hostile, honest := startTwoNetworks(t)
	honest = honest.signUp(t)
	flood, release := hostile.site.holdLock(t, "LOCK TABLE closet_items IN SHARE MODE")
	defer release()
	var uploads []func()
	for i := range byte(10) {
		account, file := hostile.signUp(t), skinFile(t, 1+i)
		uploads = append(uploads, func() { account.upload(t, "name=Steve&type=steve", bytes.Clone(file)).isOKOrUnavailable(t) })
	}
	flood(3, uploads...)
	file := encodePNG(t, tinyImage())
	for range 3 { // the file is rejected only after it was admitted
		honest.respondsSoon(t, "an upload in another network", 422, func() response { return honest.upload(t, "name=Steve&type=steve", file) })
	}
}

// tinyImage returns a picture of no texture's size.
func tinyImage() image.Image { return image.NewNRGBA(image.Rect(0, 0, 1, 1)) }

// slowFiles is a file store that blocks reads until release is closed.
type slowFiles struct {
	core.FileStore

	reading, maxReading atomic.Int64
	release             chan struct{}
}

func (f *slowFiles) Get(ctx context.Context, hash skin.Hash) ([]byte, error) {
	n := f.reading.Add(1)
	defer f.reading.Add(-1)
	for most := f.maxReading.Load(); n > most && !f.maxReading.CompareAndSwap(most, n); most = f.maxReading.Load() {
	}
	<-f.release
	return f.FileStore.Get(ctx, hash)
}

// A change of a texture's type reads and decodes its file. The number of concurrent reads is
// bounded.
func TestTypeChangesBoundConcurrentReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, "LIMIT_REQUESTS=0")
	db, services := s.services(t)
	files := &slowFiles{FileStore: s.files, release: make(chan struct{})}
	services.Textures = core.NewTextures(db, files, s.setup.Textures, s.setup.Quotas, s.setup.Scores)
	c := client{site: s, db: db, services: services, server: s.httpServer(t, services)}.from(t, "203.0.113.7")
	c = c.signUp(t)
	tid := c.texture(t, "name=Steve&type=steve", skinFile(t, 1))
	var changes sync.WaitGroup
	began := make(chan struct{}, 50)
	for range cap(began) {
		changes.Go(func() {
			began <- struct{}{}
			c.put(t, "/api/textures/"+tid, `{"type":"alex"}`).isOKOrUnavailable(t)
		})
	}
	for range cap(began) {
		<-began
	}
	other := c.from(t, "198.51.100.1").signUp(t)
	for files.maxReading.Load() < 3 || files.reading.Load() < files.maxReading.Load() {
		runtime.Gosched()
	}
	for range 20 { // time for more reads, if they were allowed
		other.respondsSoon(t, "a read in another network", 200, func() response { return other.get(t, "/api/textures/"+tid) })
	}
	close(files.release)
	changes.Wait()
	if n := files.maxReading.Load(); n != 3 {
		t.Errorf("%d files were read at once; want 3, one less than may be", n)
	}
}
