package api_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// numberedSkin returns the PNG of a skin with different pixels for every number.
func numberedSkin(t *testing.T, n int) []byte {
	t.Helper()
	sheet := artwork.Explorer()
	sheet.Pix[1], sheet.Pix[2] = byte(n>>8), byte(n)
	return fileOf(t, sheet, 1)
}

// noLimits are the settings that turn all rate limits off.
var noLimits = []string{"SESSIONS_PER_USER=0", "LIMIT_REQUESTS=0", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0", "LIMIT_CHANGES=0", "LIMIT_REPORTS=0", "LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0"}

// twoServers starts two servers on a site and returns a client of each.
func twoServers(t *testing.T) (*testSite, [2]client) {
	t.Helper()
	s := newSite(t, noLimits...)
	return s, [2]client{s.serve(t), s.serve(t)}
}

// checkLikes checks that every texture has as many likes as there are closets with it.
func (s *testSite) checkLikes(t *testing.T) {
	t.Helper()
	if n := s.count(t, "SELECT count(*) FROM textures t WHERE likes <> (SELECT count(*) FROM closet_items c WHERE c.tid = t.tid)"); n != 0 {
		t.Errorf("%d textures have other likes than closets", n)
	}
}

func TestConcurrentPlayersOfOneName(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	_, servers := twoServers(t)
	var users []client
	for i := range 5 {
		users = append(users, servers[i%2].signUp(t))
	}
	responses := make(chan response, 50)
	for i := range cap(responses) {
		go func() {
			responses <- users[i%5].post(t, "/api/players", `{"name":"`+[]string{"Steve", "STEVE"}[i/5%2]+`"}`)
		}()
	}
	made := 0
	for range cap(responses) {
		if a := <-responses; a.status == 200 {
			made++
		} else {
			a.isError(t, 409, 2, "name")
		}
	}
	if made != 1 {
		t.Errorf("of 50 adds of one name %d succeed; want 1", made)
	}
}

func TestConcurrentUploadsOfSamePixels(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	s, servers := twoServers(t)
	first, second := servers[0].signUp(t), servers[1].signUp(t)
	f := func(round int, form string, a, b client) {
		t.Helper()
		responses := make(chan response, 2)
		for _, c := range []client{a, b} {
			go func() { responses <- c.upload(t, "name=N&type=steve"+form, numberedSkin(t, round)) }()
		}
		won, lost := <-responses, <-responses
		if won.status != 200 {
			won, lost = lost, won
		}
		if won.status != 200 {
			t.Fatalf("both are refused: %d %s, %d %s", won.status, won.body, lost.status, lost.body)
		}
		lost.is(t, 409, exists(won.field(t, "data", "tid")))
	}
	for round := range 20 {
		f(2*round, "", first, second)
		f(2*round+1, "&public=false", first, servers[1].as(first.token))
	}
	if n := s.count(t, "SELECT count(*) FROM textures"); n != 40 {
		t.Errorf("there are %d textures; want 40", n)
	}
	s.checkLikes(t)
}

// Likes stay equal to the number of closets under concurrent additions, removals, uploads and
// deletions of users.
func TestLikesCountClosets(t *testing.T) {
	t.Parallel()

	s, servers := twoServers(t)
	uploader := servers[0].signUp(t)
	var tids []string
	for i := range 4 {
		tids = append(tids, uploader.texture(t, "name=N&type=steve", numberedSkin(t, i)))
	}
	work := func(worker int, c client, statuses ...int) {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		for step := range 25 {
			tid := tids[random.IntN(len(tids))]
			var a response
			switch random.IntN(5) {
			case 0, 1:
				a = c.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
			case 2, 3:
				a = c.delete(t, "/api/closet/"+tid)
			default:
				a = c.upload(t, fmt.Sprintf("name=N&type=steve&public=%t", step%2 == 0), numberedSkin(t, 100*worker+step))
			}
			if !slices.Contains(statuses, a.status) {
				t.Errorf("%s: %d %s", a.request, a.status, a.body)
			}
		}
	}
	var users sync.WaitGroup
	for user := range 8 {
		c := servers[user%2].signUp(t)
		otherServer := servers[(user+1)%2].as(c.token)
		if user >= 3 {
			users.Go(func() { work(user+1, c, 200, 404, 409) })
			users.Go(func() { work(user+101, otherServer, 200, 404, 409) })
			continue
		}
		// Three users are deleted while they send requests to the other server.
		c.withPassword(t, "correct horse")
		users.Go(func() {
			work(user+1, c, 200, 404, 409)
			if a := c.delete(t, "/api/user?password=correct+horse"); a.status != 200 {
				t.Errorf("%s: %d %s", a.request, a.status, a.body)
			}
		})
		users.Go(func() { work(user+101, otherServer, 200, 404, 409, 401) })
	}
	users.Wait()
	s.checkLikes(t)
}

// Each of several concurrent requests sets both slots at once, and its response has the values that
// it set.
func TestTextureChangesAreAtomic(t *testing.T) {
	t.Parallel()

	_, servers := twoServers(t)
	c := servers[0].signUp(t)
	steve := c.player(t, "Steve")
	var pairs []outfit
	for i := range 6 {
		cape := artwork.Sunrise()
		cape.Pix[1] = byte(i)
		pairs = append(pairs, outfit{c.texture(t, "name=N&type=steve", numberedSkin(t, i)), c.texture(t, "name=N&type=cape", fileOf(t, cape, 1))})
	}
	otherServer := servers[1].as(c.token)
	dressed := make(chan struct{})
	var dressing, reading sync.WaitGroup
	for i, p := range pairs {
		for _, c := range []client{c, otherServer} {
			dressing.Go(func() {
				for range 10 {
					a := c.put(t, steve+"/textures", `{"skin":`+p.skin+`,"cape":`+p.cape+`}`)
					if got := (outfit{a.field(t, "data", "tid_skin"), a.field(t, "data", "tid_cape")}); got != p {
						t.Errorf("pair %d: set %v, but the answer says %v", i, p, got)
					}
				}
			})
		}
	}
	reading.Go(func() {
		for {
			got := otherServer.outfit(t, "Steve")
			if !slices.Contains(pairs, got) && got != (outfit{"0", "0"}) {
				t.Errorf("the player wears %v, which are of two requests", got)
			}
			select {
			case <-dressed:
				return
			default:
			}
		}
	})
	dressing.Wait()
	close(dressed)
	reading.Wait()
}

// Two concurrent requests that change one slot each do not undo each other's change.
func TestConcurrentSlotChanges(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	_, servers := twoServers(t)
	c := servers[0].signUp(t)
	otherServer := servers[1].as(c.token)
	steve := c.player(t, "Steve")
	outfits := [2]outfit{
		{c.texture(t, "name=N&type=steve", numberedSkin(t, 0)), c.texture(t, "name=N&type=cape", fileOf(t, artwork.Sunrise(), 0))},
		{c.texture(t, "name=N&type=steve", numberedSkin(t, 1)), c.texture(t, "name=N&type=cape", fileOf(t, artwork.Sunrise(), 1))},
	}
	for round := range 200 {
		next := outfits[round%2]
		var both sync.WaitGroup
		both.Go(func() { c.put(t, steve+"/textures", `{"skin":`+next.skin+`}`) })
		both.Go(func() { otherServer.put(t, steve+"/textures", `{"cape":`+next.cape+`}`) })
		both.Wait()
		if got := c.outfit(t, "Steve"); got != next {
			t.Fatalf("round %d: the player wears %v; want %v", round, got, next)
		}
	}
}

// deletedUser is a user that is deleted during requests of their own and of other users to two
// servers.
type deletedUser struct {
	client
	round                int
	player               string // path of the player
	secret, cape, public string // tids of textures; only the last is public

	mu                      sync.Mutex
	privateTIDs, publicTIDs []string // tids of uploads
}

// newDeletedUser returns a user with a player and with private and public textures.
func newDeletedUser(t *testing.T, c client, round int) *deletedUser {
	t.Helper()
	l := &deletedUser{client: c.signUp(t), round: round}
	l.withPassword(t, "correct horse")
	l.secret = l.texture(t, "name=Secret&type=steve&public=false", numberedSkin(t, 1000*round))
	l.public = l.texture(t, "name=Public&type=steve", numberedSkin(t, 1000*round+1))
	l.cape = l.texture(t, "name=Cape&type=cape&public=false", capeFile(t))
	l.privateTIDs, l.publicTIDs = []string{l.secret, l.cape}, []string{l.public}
	l.player = l.client.player(t, fmt.Sprintf("leaver%d", round))
	l.notify(t, "Title", "Content")
	return l
}

// upload uploads pixels that other workers upload too, and records the tid.
func (l *deletedUser) upload(t *testing.T, c client, step int, public bool) response {
	t.Helper()
	a := c.upload(t, fmt.Sprintf("name=N&type=steve&public=%t", public), numberedSkin(t, 1000*l.round+2+step))
	if a.status == 200 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if tid := a.field(t, "data", "tid"); public {
			l.publicTIDs = append(l.publicTIDs, tid)
		} else {
			l.privateTIDs = append(l.privateTIDs, tid)
		}
	}
	return a
}

// login logs in, and out again.
func (l *deletedUser) login(t *testing.T, c client, email string) response {
	t.Helper()
	a := c.as("").post(t, "/api/auth/login", `{"email":"`+email+`","password":"correct horse"}`)
	if a.status != 200 {
		return a
	}
	return c.as(a.field(t, "token")).send(t, "POST", "/api/auth/logout", body{})
}

// ownRequest sends one of the user's own requests, chosen by step.
func (l *deletedUser) ownRequest(t *testing.T, c client, email, notification string, worker, step int) response {
	t.Helper()
	switch step % 19 {
	case 0:
		return c.post(t, "/api/players", fmt.Sprintf(`{"name":"p%d_%d_%d"}`, l.round, worker, step))
	case 1:
		return c.put(t, l.player+"/name", fmt.Sprintf(`{"name":"r%d_%d_%d"}`, l.round, worker, step))
	case 2:
		return c.put(t, l.player+"/textures", `{"skin":`+l.secret+`,"cape":`+l.cape+`}`)
	case 3:
		return l.upload(t, c, step, false)
	case 4:
		return c.delete(t, l.player+"/textures?skin&cape")
	case 5:
		return l.upload(t, c, step, true)
	case 6:
		return c.post(t, "/api/closet", `{"tid":`+l.public+`,"name":"N"}`)
	case 7:
		return c.put(t, "/api/closet/"+l.public, `{"name":"M"}`)
	case 8:
		return c.delete(t, "/api/closet/"+l.public)
	case 9:
		return c.get(t, "/api/closet")
	case 10:
		return c.get(t, "/api/players")
	case 11:
		return c.get(t, "/api/user/notifications")
	case 12:
		return c.read(t, notification)
	case 13:
		return c.put(t, "/api/user", `{"nickname":"N"}`)
	case 14:
		return c.put(t, "/api/user/avatar", `{"tid":`+[]string{l.secret, "0"}[worker%2]+`}`)
	case 15:
		return c.send(t, "POST", "/api/auth/refresh", body{})
	case 16:
		return l.login(t, c, email)
	case 17:
		return c.put(t, "/api/user/password", `{"current_password":"wrong horse","new_password":"another horse"}`)
	default:
		return c.put(t, "/api/user/email", `{"email":"taken@example.com","password":"correct horse"}`)
	}
}

// requestByOther sends a request of another user that concerns the deleted user's textures, chosen
// by step.
func (l *deletedUser) requestByOther(t *testing.T, c client, player string, step int) response {
	t.Helper()
	switch step % 9 {
	case 0:
		return c.post(t, "/api/closet", `{"tid":`+l.secret+`,"name":"N"}`)
	case 1:
		return c.post(t, "/api/closet", `{"tid":`+l.public+`,"name":"N"}`)
	case 2:
		return c.put(t, player+"/textures", `{"skin":`+l.secret+`}`)
	case 3:
		return c.put(t, "/api/user/avatar", `{"tid":`+l.secret+`}`)
	case 4:
		return c.put(t, player+"/textures", `{"skin":`+l.public+`}`)
	case 5:
		return c.upload(t, "name=N&type=steve", numberedSkin(t, 1000*l.round+2+step))
	case 6:
		return c.delete(t, "/api/closet/"+l.public)
	case 7:
		return c.put(t, "/api/closet/"+l.secret, `{"name":"M"}`)
	default:
		return c.delete(t, "/api/closet/"+l.secret)
	}
}

// The deletion of a user during requests of every kind leaves no dangling reference, and every
// response has a documented status.
func TestDeleteUserDuringRequests(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	s, servers := twoServers(t)
	s.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('taken@example.com', 'taken@example.com', 'N', 'x')")
	for round := range 3 {
		l := newDeletedUser(t, servers[0], round)
		email, notification := l.get(t, "/api/user").field(t, "email"), l.unread(t)[0]
		deleted := make(chan struct{})
		var begun, work sync.WaitGroup
		// startWorker starts a worker that sends requests until the user is deleted, and one more after
		// that.
		startWorker := func(do func(step int) response, statuses, lastStatuses []int) {
			begun.Add(1)
			work.Go(func() {
				for step := 0; ; step++ {
					if step == 3 {
						begun.Done()
					}
					last := false
					select {
					case <-deleted:
						last, statuses = true, lastStatuses
					default:
					}
					if a := do(step); !slices.Contains(statuses, a.status) {
						t.Errorf("%s: %d %s; want one of %v", a.request, a.status, a.body, statuses)
					}
					if last && step >= 3 {
						return
					}
				}
			})
		}
		for worker := range 6 {
			c := servers[worker%2].as(l.token)
			startWorker(func(step int) response {
				return l.ownRequest(t, c, email, notification, worker, 3*worker+step)
			}, []int{200, 204, 401, 404, 409, 422}, []int{401})
		}
		for i := range 4 {
			c := servers[i%2].signUp(t)
			s.exec(t, "UPDATE users SET permission = $2 WHERE uid = $1", c.uid, i/2)
			player := c.player(t, fmt.Sprintf("other%d_%d", round, i))
			startWorker(func(step int) response { return l.requestByOther(t, c, player, 2*i+step) }, []int{200, 403, 404, 409}, []int{200, 404, 409})
		}
		startWorker(func(int) response {
			if _, err := servers[1].services.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "Hear!"); err != nil {
				t.Error(err)
			}
			return response{}
		}, []int{0}, []int{0})

		begun.Wait()
		servers[0].as(l.token).delete(t, "/api/user?password=correct+horse").is(t, 200, `{"code":0,"message":"<text>"}`)
		close(deleted)
		work.Wait()
		l.checkNothingLeft(t)
	}
	s.checkLikes(t)
}

// checkNothingLeft checks that no row refers to the deleted user or to a missing texture, but for
// the records of deletions.
func (l *deletedUser) checkNothingLeft(t *testing.T) {
	t.Helper()
	rows, err := l.site.sql.Query(t.Context(), `
		SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> 'texture_changes' AND column_name IN ('uid', 'uploader', 'tid', 'tid_skin', 'tid_cape', 'sid', 'mid')`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name string }])
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) < 15 {
		t.Fatalf("%d columns may name users or textures; want at least 15", len(columns))
	}
	for _, column := range columns {
		// In texture_likes the uploader is 0 once the user is deleted.
		missing := map[string]string{
			"uid": "SELECT uid FROM users", "uploader": "SELECT uid FROM users UNION ALL SELECT 0", "sid": "SELECT sid FROM sessions", "mid": "SELECT mid FROM messages",
		}[column.Name]
		if missing == "" {
			missing = "SELECT tid FROM textures"
		}
		if n := l.site.count(t, "SELECT count(*) FROM "+column.Table+" WHERE "+column.Name+" NOT IN ("+missing+")"); n != 0 {
			t.Errorf("%d rows of %s.%s refer to missing rows", n, column.Table, column.Name)
		}
	}
	if n := l.site.count(t, "SELECT count(*) FROM users WHERE uid = $1", l.uid); n != 0 {
		t.Error("the user is there")
	}
	if n := l.site.count(t, "SELECT count(*) FROM textures WHERE tid::text = ANY ($1)", l.privateTIDs); n != 0 {
		t.Errorf("%d of %d private textures are left", n, len(l.privateTIDs))
	}
	if n := l.site.count(t, "SELECT count(*) FROM textures WHERE tid::text = ANY ($1) AND public AND uploader IS NULL", l.publicTIDs); n != len(l.publicTIDs) {
		t.Errorf("%d of %d public textures are left", n, len(l.publicTIDs))
	}
	if n := l.site.count(t, "SELECT count(*) FROM textures WHERE uploader IS NULL AND NOT public"); n != 0 {
		t.Errorf("%d private textures have no uploader", n)
	}
}
