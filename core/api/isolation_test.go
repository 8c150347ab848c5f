package api_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// startTwoNetworks starts a server and returns clients of two networks, neither signed in. Its
// connections to PostgreSQL have the database's name as application_name, so that awaitLocks finds them.
func startTwoNetworks(t *testing.T, environ ...string) (hostile, honest client) {
	t.Helper()
	s := newSite(t, append(environ, "LIMIT_REQUESTS=0")...)
	s.URL += "&application_name=" + postgrestest.Name(s.URL)
	c := s.serve(t)
	return c.from(t, "203.0.113.7"), c.from(t, "198.51.100.1")
}

// holdLock runs a statement in a transaction that keeps its locks until release is called. release
// also waits for the requests that flood has sent.
func (s testSite) holdLock(t *testing.T, sql string, args ...any) (flood func(want int, requests ...func()), release func()) {
	t.Helper()
	tx := testenv.Must(postgrestest.Conn(t, s.URL).Begin(t.Context()))(t)
	testenv.Must(tx.Exec(t.Context(), sql, args...))(t)
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
		testenv.Is(t, tx.Rollback(context.WithoutCancel(t.Context())), nil, "the rollback")
		sent.Wait()
	})
}

// awaitLocks waits until want statements of the site wait for locks.
func (s testSite) awaitLocks(t *testing.T, want int) {
	t.Helper()
	conn := postgrestest.Conn(t, s.URL)
	testenv.Eventually(t, fmt.Sprintf("%d statements wait for locks", want), func() bool {
		rows, _ := conn.Query(t.Context(), "SELECT count(*) FROM pg_stat_activity "+ // CollectExactlyOneRow reports the error
			"WHERE application_name = current_database() AND cardinality(pg_blocking_pids(pid)) > 0")
		return testenv.Must(pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]))(t) >= want
	})
}

// respondsSoon checks the status of a response, and that it took at most 2 s.
func (c client) respondsSoon(t *testing.T, what string, want int, send func() response) {
	t.Helper()
	began := time.Now()
	a := send()
	took := time.Since(began)
	a.HasStatus(t, want)
	testenv.Check(t, took <= 2*time.Second, "%s took %s; want it soon", what, took.Round(time.Millisecond))
}

// isOKOrUnavailable checks that a flooding request succeeded or was rejected with 503.
func isOKOrUnavailable(t *testing.T, r response) {
	t.Helper()
	testenv.Check(t, r.Status == 200 || r.Status == 503, "%s of a hostile client: %d %s", r.Request(), r.Status, r.Body)
}

// Two hundred writes of one user that wait for one row leave connections to other users, of the
// same network too.
func TestWritesOfOneUserLeaveConnections(t *testing.T) {
	t.Parallel()
	hostile, honest := startTwoNetworks(t)
	neighbour := hostile.signUp(t)
	hostile, honest = hostile.signUp(t), honest.signUp(t)
	flood, release := hostile.site.holdLock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", hostile.UID)
	defer release()
	writes := make([]func(), 200)
	for i := range writes {
		writes[i] = func() { isOKOrUnavailable(t, hostile.Put(t, "/api/user", `{"nickname":"Hostile"}`)) }
	}
	flood(2, writes...)
	for range 3 {
		honest.respondsSoon(t, "a write in another network", 200, func() response { return honest.Put(t, "/api/user", `{"nickname":"Honest"}`) })
		neighbour.respondsSoon(t, "a write of another user", 200, func() response { return neighbour.Put(t, "/api/user", `{"nickname":"Neighbour"}`) })
		hostile.respondsSoon(t, "a read of the same user", 200, func() response { return hostile.Get(t, "/api/user") })
	}
	release()
	hostile.respondsSoon(t, "a write of the same user afterwards", 200, func() response { return hostile.Put(t, "/api/user", `{"nickname":"Late"}`) })
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
		writes = append(writes, func() { isOKOrUnavailable(t, account.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)) })
	}
	flood(6, writes...) // three quarters of the connections
	for range 3 {
		honest.respondsSoon(t, "a write in another network", 200, func() response { return honest.Put(t, "/api/user", `{"nickname":"Honest"}`) })
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
		reads[i] = func() { isOKOrUnavailable(t, hostile.Get(t, "/api/user/score")) }
	}
	flood(3, reads...)
	for range 3 {
		honest.respondsSoon(t, "a list in another network", 200, func() response { return honest.Get(t, "/api/players") })
		honest.respondsSoon(t, "a look at one's account in another network", 200, func() response { return honest.Get(t, "/api/user") })
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
		uploads = append(uploads, func() { isOKOrUnavailable(t, account.upload(t, "name=Steve&type=steve", bytes.Clone(file))) })
	}
	flood(3, uploads...)
	file := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 1, 1)))
	for range 3 { // the file, of no texture's size, is rejected only after it was admitted
		honest.respondsSoon(t, "an upload in another network", 422, func() response { return honest.upload(t, "name=Steve&type=steve", file) })
	}
}

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
	d := s.NewDomain(t)
	files := &slowFiles{FileStore: s.Files, release: make(chan struct{})}
	d.Textures = core.NewTextures(d.DB, files, s.Setup.Textures, s.Setup.Quotas, s.Setup.Scores)
	c := s.clientOf(t, d).from(t, "203.0.113.7")
	c = c.signUp(t)
	tid := c.texture(t, "name=Steve&type=steve", skinFile(t, 1))
	var changes sync.WaitGroup
	began := make(chan struct{}, 50)
	for range cap(began) {
		changes.Go(func() {
			began <- struct{}{}
			isOKOrUnavailable(t, c.Put(t, "/api/textures/"+tid, `{"type":"alex"}`))
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
		other.respondsSoon(t, "a read in another network", 200, func() response { return other.Get(t, "/api/textures/"+tid) })
	}
	close(files.release)
	changes.Wait()
	testenv.Equal(t, files.maxReading.Load(), 3, "files were read at once")
}
