package compare

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	userCount        = 2000 // signed-in users, each with a player
	password         = "a password of many"
	siteEach         = 2 * time.Second // whole seconds, for pgbench
	logInConnections = 8               // each log-in takes 20 ms of CPU time
	uploadsEach      = 1500            // prepared for a round, more than it can send
	freshnessTries   = 20              // changes in a round
	changeTimeout    = 10 * time.Second
)

// liveStack is the real programs: core with its database, and an edge.
type liveStack struct {
	*target // core

	core   *stack.Process
	files  blobstore.Config
	edges  []*stack.Process
	images []string // addresses of the edges
	users  []site.SignedInUser
	pids   []int64
	tids   [4]int64
	tags   [4]string // of the avatars of those textures
}

// newCore returns a core that has not started, with users that are signed in.
func (e *env) newCore(users int) *liveStack {
	s := &liveStack{files: blobstore.Config{URL: "file://" + e.TempDir()}}
	s.core = site.NewCore(e, s.files)
	s.core.NameConnections()
	s.users = site.SignIn(e, s.core, users)
	return s
}

// liftLimits switches limits of core off.
func (s *liveStack) liftLimits(e *env) {
	for _, limit := range []string{
		"REQUESTS", "UPLOADS", "CHANGES", "LOGIN_FAILURES", "LOGIN_FAILURES_PER_ADDRESS", "LOGIN_FAILURES_PER_ACCOUNT",
	} {
		s.core.Set("CORE_LIMIT_" + limit + "=0")
		if setting := (results.Setting{Name: "CORE_LIMIT_" + limit, Value: "0"}); !slices.Contains(e.settings, setting) {
			e.settings = append(e.settings, setting)
		}
	}
}

func (s *liveStack) start(e *env) {
	s.core.StartReady(e)
	s.target = &target{name: "core", address: s.core.Address(e, "public"), clocks: []clock{{cpuFigure, s.core.CPU}}}
}

func (s *liveStack) addEdge(e *env) {
	edge := site.NewEdge(e, s.files, s.core)
	edge.StartReady(e)
	s.edges, s.images = append(s.edges, edge), append(s.images, edge.Address(e, "public"))
}

const insertPlayers = `
	INSERT INTO players (uid, name, name_key, tid_skin)
	SELECT uid, 'p' || n, 'p' || n, $2 FROM unnest($1::bigint[]) WITH ORDINALITY AS u (uid, n) ORDER BY n
	RETURNING pid`

// insertPlayers gives each user a player, p1 and so on, with the first of the textures.
func (s *liveStack) insertPlayers(e *env) {
	s.pids = site.Rows(e, s.conn(e), pgx.RowTo[int64], insertPlayers, s.userIDs(), s.tids[0])
}

func (s *liveStack) userIDs() []int64 {
	uids := make([]int64, len(s.users))
	for i, p := range s.users {
		uids[i] = int64(p.User)
	}
	return uids
}

func (s *liveStack) conn(e *env) *pgx.Conn {
	return postgrestest.Conn(e, s.core.Setting("CORE_DATABASE_URL"))
}

// openLive opens the stack. Core and the edge share the processor of the servers; the database may use
// all.
func (e *env) openLive() *liveStack {
	if e.live != nil {
		return e.live
	}
	s := e.newCore(userCount)
	s.liftLimits(e)
	e.addSetting("core's processor", e.serverCPU)
	e.addSetting("PostgreSQL's and pgbench's processors", "all")
	e.addDatabaseSettings()
	e.pinned(func() {
		s.start(e)
		s.addEdge(e)
	})
	s.uploadTextures(e)
	s.insertPlayers(e)
	e.live = s
	return s
}

func (s *liveStack) uploadTextures(e *env) {
	uploader := &site.Client{Base: "http://" + s.address, Token: s.users[0].Bearer}
	for i := range s.tids {
		s.tids[i] = int64(uploader.Upload(e, "bench", skin.Classic, skintest.Noise(uint64(i), 64, 64)).TID)
		for _, images := range s.images {
			s.tags[i] = testenv.Must(fetchTag(fmt.Sprintf("http://%s/avatar/%d", images, s.tids[i])))(e)
		}
	}
}

// api returns the measurement of core in a closed loop.
func (e *env) api(t *target, stream *load.Stream) func(round int) outcome {
	return func(int) outcome { return e.measure(t, e.duration(siteEach), stream).outcome(t) }
}

// beside returns core as a subject beside another one.
func (e *env) beside(veneer func(round int) outcome, other subject) []subject {
	return []subject{{name: "Veneer", measure: veneer}, other}
}

// pgbench returns pgbench as a subject. Its rounds are whole seconds, in a quick run a few transactions.
func (e *env) pgbench(start func() *site.Pgbench) subject {
	const name = "pgbench"
	if _, missing := e.version(baseline.Pgbench); missing != nil {
		return subject{name: name, missing: missing.Error()}
	}
	p, each := start(), time.Duration(e.quick(int(siteEach), 0))
	return subject{name: name, measure: func(int) outcome { return outcome{figure: p.Rate(e, each)} }}
}

// userReads requests random users' own data. The round is the seed.
func (e *env) userReads(users []site.SignedInUser, round int) *load.Stream {
	stream, wants := streamOf(connections, fasthttp.StatusOK), make([]string, len(users))
	stream.Order = load.Random(len(users), uint64(round))
	for i, p := range users {
		stream.Requests = append(stream.Requests, post("GET", "/api/user", "", p.Bearer, nil))
		wants[i] = fmt.Sprintf(`{"uid":%d,`, p.User)
	}
	stream.InspectShare, stream.Inspect = e.compareShare(), beginWith(wants)
	return stream
}

func (e *env) reads() []subject {
	s := e.openLive()
	veneer := e.api(s.target, e.userReads(s.users, 0))
	veneer(0) // so that the database has seen the query
	return e.beside(veneer, e.pgbench(func() *site.Pgbench { return site.NewSessionPgbench(e, s.core, s.users, connections) }))
}

// readLatency opens core for an open loop.
func (e *env) readLatency() []subject {
	s := e.openLive()
	stream := e.userReads(s.users, 0)
	const share = 0.6
	stream.Rate = share * e.api(s.target, stream)(0).figure
	e.addSetting("reads a second at a constant rate", int(stream.Rate))
	return []subject{{name: "Veneer", measure: func(int) outcome {
		got := e.measure(s.target, e.duration(siteEach), stream)
		return outcome{latency(got.Answers, 99), []namedFigure{got.percentile(50), got.percentile(90), got.percentile(100), loadBusy(got.Answers)}}
	}}}
}

// limits opens two cores, since the cost of limits is less than the machine's speed varies.
func (e *env) limits() []subject {
	var all []subject
	for _, name := range []string{"Veneer", "without limits of requests"} {
		s := e.newCore(userCount)
		if len(all) > 0 {
			s.core.Set("CORE_LIMIT_REQUESTS=0")
		}
		e.pinned(func() { s.start(e) })
		stream := e.userReads(s.users, 0)
		all = append(all, subject{name: name, measure: func(int) outcome {
			return e.measure(s.target, e.duration(siteEach/4), stream).outcome(s.target)
		}})
	}
	return all
}

// frontPage opens what core answers from its memory, through an edge.
func (e *env) frontPage() []subject {
	s := e.openLive()
	edge := &target{name: "edge", address: s.images[0], clocks: []clock{{cpuFigure, s.edges[0].CPU}}}
	var all []subject
	for _, path := range []string{"/", "/api/site"} {
		request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n", path)
		stream := streamOf(connections, fasthttp.StatusOK, request)
		all = append(all, subject{name: path, measure: e.api(edge, stream)})
	}
	return all
}

// unknownAccounts opens a core whose limits of log-ins are beyond what is tried here, but not switched
// off, so that failures are counted as usual.
func (e *env) unknownAccounts() []subject {
	s := e.newCore(1)
	for _, limit := range []string{"", "_PER_ADDRESS", "_PER_ACCOUNT"} {
		s.core.Set("CORE_LIMIT_LOGIN_FAILURES" + limit + "=1000000")
	}
	s.core.Set("CORE_LIMIT_REQUESTS=0")
	s.start(e)
	s.register(e)
	var all []subject
	for _, email := range []string{"first@example.org", "unknown@example.org"} {
		stream := streamOf(1, fasthttp.StatusUnauthorized, post("POST", "/api/auth/login", urlEncoded, "", []byte("email="+email+"&password=wrong")))
		all = append(all, subject{name: map[bool]string{true: "an account", false: "none"}[len(all) == 0], measure: func(int) outcome {
			stream.Order = load.Repeat(1, 1)
			return outcome{figure: latency(e.measure(s.target, time.Minute, stream).Answers, 50)}
		}})
	}
	return all
}

// register creates the account first@example.org with the password.
func (s *liveStack) register(e *env) {
	client := &site.Client{Base: "http://" + s.address}
	client.Call(e, "POST", "/api/auth/register", map[string]string{"email": "first@example.org", "password": password, "nickname": "First"})
}

func (s *liveStack) setSkin(player int, tid int64) (path string, form []byte) {
	return fmt.Sprintf("/api/players/%d/textures", s.pids[player]), strconv.AppendInt([]byte("skin="), tid, 10)
}

// skinWrites returns the requests that give all players one of the textures after the other.
func (s *liveStack) skinWrites(tids ...int64) *load.Stream {
	stream := streamOf(connections, fasthttp.StatusOK)
	for _, tid := range tids {
		for i := range s.pids {
			path, form := s.setSkin(i, tid)
			stream.Requests = append(stream.Requests, post("PUT", path, urlEncoded, s.users[i].Bearer, form))
		}
	}
	return stream
}

func (e *env) writes() []subject {
	s := e.openLive()
	// It must be a change there, too, or PostgreSQL would update no index.
	script := fmt.Sprintf("\\set n random(%d, %d)\nUPDATE players SET tid_skin = CASE tid_skin WHEN %d THEN %d ELSE %[3]d END, last_modified = now() WHERE pid = :n;\n",
		s.pids[0], s.pids[len(s.pids)-1], s.tids[2], s.tids[3])
	return e.beside(e.api(s.target, s.skinWrites(s.tids[1], s.tids[2])), e.pgbench(func() *site.Pgbench {
		return site.NewPgbench(e, s.core.Setting("CORE_DATABASE_URL"), script, connections)
	}))
}

func (e *env) logIns() []subject {
	s := e.openLive()
	return e.beside(e.api(s.target, s.allLogIn(e)), e.minimal("argon2id alone", [][]byte{[]byte(password)}, baseline.Argon2))
}

// allLogIn gives all users one password, and returns their log-ins one after another.
func (s *liveStack) allLogIn(e *env) *load.Stream {
	s.register(e)
	emails := site.Rows(e, s.conn(e), pgx.RowTo[string], `
		UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE email = 'first@example.org')
		WHERE email LIKE 'person%' RETURNING email`)
	stream := streamOf(logInConnections, fasthttp.StatusOK)
	for _, email := range emails {
		stream.Requests = append(stream.Requests, post("POST", "/api/auth/login", urlEncoded, "", []byte("email="+email+"&password="+password)))
	}
	return stream
}

// minimal opens a server that does only the unavoidable part of core's work on a body, at the same
// number of connections.
func (e *env) minimal(name string, bodies [][]byte, program baseline.Program, args ...string) subject {
	stream := streamOf(logInConnections, fasthttp.StatusOK)
	for _, body := range bodies {
		stream.Requests = append(stream.Requests, post("POST", "/", "application/octet-stream", "", body))
	}
	return e.open(name, "", program, func() *baseline.Server { return program.Start(e, args...) }).subject(func(t *target) func(int) outcome { return e.api(t, stream) })
}

func (e *env) uploads() []subject {
	s := e.openLive()
	files := make([][]byte, 256)
	for i := range files {
		files[i] = testenv.Must(newSkin(i).PNG())(e)
	}
	stream := streamOf(logInConnections, fasthttp.StatusOK)
	veneer := e.api(s.target, stream)
	return e.beside(func(round int) outcome {
		stream.Requests, stream.Order = s.newUploads(len(files)+round*uploadsEach, uploadsEach), load.Once(uploadsEach)
		return veneer(round)
	}, e.minimal("image/png and a file", files, baseline.Reencode, e.TempDir()))
}

// newSkin returns a typical skin, with a few texels that differ for each number.
func newSkin(n int) skin.Sheet {
	robot := artwork.Robot()
	for i := range 8 {
		robot.Pix[4*(64*20+20+i)] = byte(n >> (8 * i))
	}
	return robot
}

// newUploads returns requests to upload new skins, from a number on. They are made ahead, as real
// clients make them elsewhere.
func (s *liveStack) newUploads(first, count int) [][]byte {
	requests := make([][]byte, count)
	_ = parallel(count, runtime.GOMAXPROCS(0), func(i int) error { // which never fails
		form := site.SheetForm("bench", skin.Classic, newSkin(first+i))
		requests[i] = post("POST", "/api/textures", site.UploadType, s.users[(first+i)%len(s.users)].Bearer, form)
		return nil
	})
	return requests
}

func parallel(n, atOnce int, do func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	return all.Wait()
}

func (e *env) freshness() []subject {
	s, ctx := e.openLive(), e.Context()
	writer, listener := s.conn(e), s.conn(e)
	testenv.Must(listener.Exec(ctx, "LISTEN bench_news"))(e)
	n := 0
	return []subject{
		{name: "Veneer", measure: e.median(func() (time.Duration, error) {
			n++
			return s.awaitChange(n%len(s.pids), n%len(s.tids))
		})},
		{name: "PostgreSQL's NOTIFY", measure: e.median(func() (time.Duration, error) {
			began := time.Now()
			batch := &pgx.Batch{}
			batch.Queue("UPDATE players SET last_modified = now() WHERE pid = $1", s.pids[0])
			batch.Queue("NOTIFY bench_news")
			if err := writer.SendBatch(ctx, batch).Close(); err != nil {
				return 0, err
			}
			_, err := listener.WaitForNotification(ctx)
			return time.Since(began), err
		})},
	}
}

// awaitChange sets one of the textures as a player's skin, or the next one if that is the current
// skin, and returns how long it took until the edge served it.
func (s *liveStack) awaitChange(player, texture int) (time.Duration, error) {
	current, err := fetchTag(s.avatar(0, player)) // the edge has the mapping then
	if err != nil {
		return 0, err
	}
	if current == s.tags[texture] {
		texture = (texture + 1) % len(s.tids)
	}
	began := time.Now()
	if err := s.changeSkin(s.address, player, s.tids[texture]); err != nil {
		return 0, err
	}
	err = s.awaitShown(0, player, s.tags[texture], 0)
	return time.Since(began), err
}

func (s *liveStack) avatar(edge, player int) string {
	return fmt.Sprintf("http://%s/avatar/player/p%d", s.images[edge], player+1)
}

func (s *liveStack) changeSkin(api string, player int, tid int64) error {
	path, form := s.setSkin(player, tid)
	_, err := call("PUT", "http://"+api+path, s.users[player].Bearer, form)
	return err
}

// awaitShown requests a player's picture from an edge until it has a tag, again after a while.
func (s *liveStack) awaitShown(edge, player int, tag string, poll time.Duration) error {
	for began := time.Now(); time.Since(began) < changeTimeout; {
		shown, err := fetchTag(s.avatar(edge, player))
		if err != nil || shown == tag {
			return err
		}
		if poll > 0 {
			<-time.After(poll)
		}
	}
	return errors.New("a change is not shown")
}

// median returns the measurement of the median of some tries.
func (e *env) median(try func() (time.Duration, error)) func(round int) outcome {
	return func(int) outcome {
		var took []time.Duration
		for range freshnessTries {
			took = append(took, testenv.Must(try())(e))
		}
		slices.Sort(took)
		return outcome{milliseconds(took[freshnessTries/2]), []namedFigure{{"longest", "ms", milliseconds(took[freshnessTries-1])}}}
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

const (
	changeRate     = 200 // changes a second
	changePoll     = 4 * time.Millisecond
	freshnessEdges = 3
	freshnessEach  = 3 * time.Second
)

// changes changes skins at a constant rate, each by a call of change with the number of the change, from
// a number on. Each player changes at most once in a few seconds.
func (e *env) changes(first int, duration time.Duration, change func(n int) error) (count int) {
	var all sync.WaitGroup
	clock := time.NewTicker(time.Second / changeRate)
	defer clock.Stop()
	count = int(changeRate * duration.Seconds())
	for n := first; n < first+count; n++ {
		<-clock.C
		all.Go(func() {
			if err := change(n); err != nil {
				e.Errorf("change %d: %v", n, err)
			}
		})
	}
	all.Wait()
	if e.Failed() {
		e.FailNow()
	}
	return count
}

// freshnessOfThree opens two cores and three edges. The commit of a change is somewhere between its
// request and core's response, so a delay since the response is a lower bound, and since the request an
// upper one.
func (e *env) freshnessOfThree() []subject {
	s := e.newCore(growthUsers)
	s.liftLimits(e)
	s.start(e)
	second := s.core.Clone(e)
	second.Start(e)
	apis := []string{s.address, second.Address(e, "public")}
	for range freshnessEdges {
		s.addEdge(e)
	}
	s.uploadTextures(e)
	s.insertPlayers(e)
	for edge := range s.images { // every picture and mapping is cached before
		for player := range s.pids {
			testenv.Must(fetchTag(s.avatar(edge, player)))(e)
		}
	}
	n := 0
	return together([]string{"since core's response", "since the request"}, func(int) []outcome {
		var sinceAnswer, sinceRequest [freshnessEdges][]time.Duration
		var mu sync.Mutex
		n += e.changes(n, e.duration(freshnessEach), func(n int) error {
			player, texture := n%len(s.pids), (n/len(s.pids)+1)%len(s.tids)
			requested := time.Now()
			if err := s.changeSkin(apis[n%len(apis)], player, s.tids[texture]); err != nil {
				return err
			}
			answered := time.Now()
			var all errgroup.Group
			for edge := range freshnessEdges {
				all.Go(func() error {
					err := s.awaitShown(edge, player, s.tags[texture], changePoll)
					shown := time.Now()
					mu.Lock()
					defer mu.Unlock()
					sinceAnswer[edge] = append(sinceAnswer[edge], shown.Sub(answered))
					sinceRequest[edge] = append(sinceRequest[edge], shown.Sub(requested))
					return err
				})
			}
			return all.Wait()
		})
		slowest := func(of [freshnessEdges][]time.Duration) outcome {
			var p50, p99 time.Duration
			for _, delays := range of {
				slices.Sort(delays)
				p50, p99 = max(p50, delays[len(delays)/2]), max(p99, delays[len(delays)*99/100])
			}
			return outcome{milliseconds(p99), []namedFigure{{"p50", "ms", milliseconds(p50)}}}
		}
		return []outcome{slowest(sinceAnswer), slowest(sinceRequest)}
	})
}
