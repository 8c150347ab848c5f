package api_test

import (
	"fmt"
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

// noLimits are the settings that turn all rate limits off, and let a busy machine take its time.
var noLimits = []string{"WORK_TIMEOUT=5m", "SESSIONS_PER_USER=0", "LIMIT_REQUESTS=0", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0", "LIMIT_CHANGES=0", "LIMIT_REPORTS=0", "LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0"}

// twoServers starts two servers on a site and returns a client of each.
func twoServers(t *testing.T) (testSite, [2]client) {
	t.Helper()
	s := newSite(t, noLimits...)
	return s, [2]client{s.serve(t), s.serve(t)}
}

// checkLikes checks that every texture has as many likes as there are closets with it.
func (s testSite) checkLikes(t *testing.T) {
	t.Helper()
	s.HasCount(t, 0, "SELECT count(*) FROM textures t WHERE likes <> (SELECT count(*) FROM closet_items c WHERE c.tid = t.tid)")
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
	otherServer := servers[1].as(c.Token)
	dressed := make(chan struct{})
	var dressing, reading sync.WaitGroup
	for _, p := range pairs {
		for _, c := range []client{c, otherServer} {
			dressing.Go(func() {
				for range 10 {
					a := c.Put(t, steve+"/textures", `{"skin":`+p.skin+`,"cape":`+p.cape+`}`)
					a.HasField(t, p.skin, "data", "tid_skin")
					a.HasField(t, p.cape, "data", "tid_cape")
				}
			})
		}
	}
	reading.Go(func() {
		for {
			got := otherServer.outfit(t, "Steve")
			testenv.Check(t, slices.Contains(pairs, got) || got == (outfit{"0", "0"}),
				"the player wears %v, which are of two requests", got)
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
func (d *deletedUser) upload(t *testing.T, c client, step int, public bool) response {
	t.Helper()
	a := c.upload(t, fmt.Sprintf("name=N&type=steve&public=%t", public), numberedSkin(t, 1000*d.round+2+step))
	if a.Status == 200 {
		d.mu.Lock()
		defer d.mu.Unlock()
		if tid := a.Field(t, "data", "tid"); public {
			d.publicTIDs = append(d.publicTIDs, tid)
		} else {
			d.privateTIDs = append(d.privateTIDs, tid)
		}
	}
	return a
}

// login logs in, and out again.
func (d *deletedUser) login(t *testing.T, c client, email string) response {
	t.Helper()
	a := c.as("").Post(t, "/api/auth/login", `{"email":"`+email+`","password":"correct horse"}`)
	if a.Status != 200 {
		return a
	}
	return c.as(a.Field(t, "token")).Send(t, "POST", "/api/auth/logout", body{})
}

// ownRequest sends one of the user's own requests, chosen by step.
func (d *deletedUser) ownRequest(t *testing.T, c client, email, notification string, worker, step int) response {
	t.Helper()
	requests := []func() response{
		func() response {
			return c.Post(t, "/api/players", fmt.Sprintf(`{"name":"p%d_%d_%d"}`, d.round, worker, step))
		},
		func() response {
			return c.Put(t, d.player+"/name", fmt.Sprintf(`{"name":"r%d_%d_%d"}`, d.round, worker, step))
		},
		func() response { return c.Put(t, d.player+"/textures", `{"skin":`+d.secret+`,"cape":`+d.cape+`}`) },
		func() response { return d.upload(t, c, step, false) },
		func() response { return c.Delete(t, d.player+"/textures?skin&cape") },
		func() response { return d.upload(t, c, step, true) },
		func() response { return c.Post(t, "/api/closet", `{"tid":`+d.public+`,"name":"N"}`) },
		func() response { return c.Put(t, "/api/closet/"+d.public, `{"name":"M"}`) },
		func() response { return c.Delete(t, "/api/closet/"+d.public) },
		func() response { return c.Get(t, "/api/closet") },
		func() response { return c.Get(t, "/api/players") },
		func() response { return c.Get(t, "/api/user/notifications") },
		func() response { return c.read(t, notification) },
		func() response { return c.Put(t, "/api/user", `{"nickname":"N"}`) },
		func() response { return c.Put(t, "/api/user/avatar", `{"tid":`+[]string{d.secret, "0"}[worker%2]+`}`) },
		func() response { return c.Send(t, "POST", "/api/auth/refresh", body{}) },
		func() response { return d.login(t, c, email) },
		func() response {
			return c.Put(t, "/api/user/password", `{"current_password":"wrong horse","new_password":"another horse"}`)
		},
		func() response {
			return c.Put(t, "/api/user/email", `{"email":"taken@example.com","password":"correct horse"}`)
		},
	}
	return requests[step%len(requests)]()
}

// requestByOther sends a request of another user that concerns the deleted user's textures, chosen
// by step.
func (d *deletedUser) requestByOther(t *testing.T, c client, player string, step int) response {
	t.Helper()
	requests := []func() response{
		func() response { return c.Post(t, "/api/closet", `{"tid":`+d.secret+`,"name":"N"}`) },
		func() response { return c.Post(t, "/api/closet", `{"tid":`+d.public+`,"name":"N"}`) },
		func() response { return c.Put(t, player+"/textures", `{"skin":`+d.secret+`}`) },
		func() response { return c.Put(t, "/api/user/avatar", `{"tid":`+d.secret+`}`) },
		func() response { return c.Put(t, player+"/textures", `{"skin":`+d.public+`}`) },
		func() response { return c.upload(t, "name=N&type=steve", numberedSkin(t, 1000*d.round+2+step)) },
		func() response { return c.Delete(t, "/api/closet/"+d.public) },
		func() response { return c.Put(t, "/api/closet/"+d.secret, `{"name":"M"}`) },
		func() response { return c.Delete(t, "/api/closet/"+d.secret) },
	}
	return requests[step%len(requests)]()
}

// The deletion of a user during requests of every kind leaves no dangling reference, and every
// response has a documented status.
func TestDeleteUserDuringRequests(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	s, servers := twoServers(t)
	s.Exec(t, "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('taken@example.com', 'taken@example.com', 'N', 'x')")
	for round := range 3 {
		l := newDeletedUser(t, servers[0], round)
		email, notification := l.Get(t, "/api/user").Field(t, "email"), l.unread(t)[0]
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
					a := do(step)
					testenv.Check(t, slices.Contains(statuses, a.Status), "%s: %d %s, not %v", a.Request(), a.Status, a.Body, statuses)
					if last && step >= 3 {
						return
					}
				}
			})
		}
		for worker := range 6 {
			c := servers[worker%2].as(l.Token)
			startWorker(func(step int) response {
				return l.ownRequest(t, c, email, notification, worker, 3*worker+step)
			}, []int{200, 204, 401, 404, 409, 422}, []int{401})
		}
		for i := range 4 {
			c := servers[i%2].signUp(t)
			s.Exec(t, "UPDATE users SET permission = $2 WHERE uid = $1", c.UID, i/2)
			player := c.player(t, fmt.Sprintf("other%d_%d", round, i))
			startWorker(func(step int) response { return l.requestByOther(t, c, player, 2*i+step) }, []int{200, 403, 404, 409}, []int{200, 404, 409})
		}
		startWorker(func(int) response {
			_, err := servers[1].Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "Hear!")
			testenv.Is(t, err, nil, "an announcement")
			return response{}
		}, []int{0}, []int{0})

		begun.Wait()
		servers[0].as(l.Token).Delete(t, "/api/user?password=correct+horse").Is(t, 200, `{"code":0,"message":"<text>"}`)
		close(deleted)
		work.Wait()
		l.checkNothingLeft(t)
	}
	s.checkLikes(t)
}

// checkNothingLeft checks that no row refers to the deleted user or to a missing texture, but for
// the records of deletions.
func (d *deletedUser) checkNothingLeft(t *testing.T) {
	t.Helper()
	// CollectRows reports the error.
	rows, _ := d.site.SQL.Query(t.Context(), `
		SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> 'texture_changes' AND column_name IN ('uid', 'uploader', 'tid', 'tid_skin', 'tid_cape', 'sid', 'mid')`)
	columns := testenv.Must(pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name string }]))(t)
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
		d.site.HasCount(t, 0, "SELECT count(*) FROM "+column.Table+" WHERE "+column.Name+" NOT IN ("+missing+")")
	}
	d.site.HasCount(t, 0, "SELECT count(*) FROM users WHERE uid = $1", d.UID)
	d.site.HasCount(t, 0, "SELECT count(*) FROM textures WHERE tid::text = ANY ($1)", d.privateTIDs)
	d.site.HasCount(t, len(d.publicTIDs), "SELECT count(*) FROM textures WHERE tid::text = ANY ($1) AND public AND uploader IS NULL", d.publicTIDs)
	d.site.HasCount(t, 0, "SELECT count(*) FROM textures WHERE uploader IS NULL AND NOT public")
}
