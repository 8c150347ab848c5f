package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
)

var allUsers, normalUsers = core.Recipients{Audience: core.AllUsers}, core.Recipients{Audience: core.NormalUsers}

func onlyUsers(users ...core.UserID) core.Recipients { return core.Recipients{Users: users} }

func TestNotify(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	expect := func(messages, notifications int) {
		t.Helper()
		var gotMessages, gotNotifications int
		if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM notifications)").
			Scan(&gotMessages, &gotNotifications); err != nil {
			t.Fatal(err)
		}
		if gotMessages != messages || gotNotifications != notifications {
			t.Errorf("%d messages and %d notifications; want %d and %d", gotMessages, gotNotifications, messages, notifications)
		}
	}

	if n := must(db.Notify(t.Context(), onlyUsers(ann.ID, ann.ID, ann.ID+100), "Title", ""))(t); n != 1 {
		t.Errorf("%d users were notified; want 1", n)
	}
	expect(1, 1)
	if n := must(db.Notify(t.Context(), onlyUsers(ann.ID+100), "Title", ""))(t); n != 0 {
		t.Errorf("%d users were notified; want none", n)
	}
	expect(1, 1) // a message without receivers is not stored
	if n := must(db.Notify(t.Context(), allUsers, "Title", ""))(t); n != 2 {
		t.Errorf("%d users were notified; want 2", n)
	}
	expect(2, 1) // a broadcast is one row

	// A message is deleted with its only receiver.
	if err := db.DeleteUser(t.Context(), credentialsOf(ann)); err != nil {
		t.Fatal(err)
	}
	expect(1, 0)
	if notified := must(db.HasNotifications(t.Context(), bob.ID))(t); !notified {
		t.Error("the other user's notification is gone")
	}
	if notified := must(db.HasNotifications(t.Context(), ann.ID))(t); notified {
		t.Error("the deleted user has a notification")
	}
}

// titles returns the titles of a user's unread notifications, the newest first.
func titles(t *testing.T, db *postgres.DB, user core.UserID) []string {
	t.Helper()
	var all []string
	for _, n := range unread(t, db, user) {
		all = append(all, n.Title)
	}
	return all
}

func unread(t *testing.T, db *postgres.DB, user core.UserID) []core.UnreadNotification {
	t.Helper()
	s := &sessionTest{db: db, user: core.User{ID: user}, now: time.Now().UTC().Truncate(time.Second)}
	return must(db.Unread(t.Context(), s.verified(s.open(t))))(t)
}

// A broadcast is addressed to the users that existed when it was sent; one for normal users, to
// those that are normal when they look. A broadcast that a user has read stays readable for
// that user.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	if n := must(db.Notify(t.Context(), normalUsers, "None", ""))(t); n != 0 {
		t.Errorf("%d users were notified; want none", n)
	}
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	permit := func(user core.User, permission core.Permission) {
		t.Helper()
		if err := db.SetPermission(t.Context(), user.ID, permission); err != nil {
			t.Fatal(err)
		}
	}
	f := func(user core.User, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, titles(t, db, user.ID)); diff != "" {
			t.Errorf("unread by %s (-want +got):\n%s", user.Nickname, diff)
		}
	}
	permit(bob, core.Administrator)

	if n := must(db.Notify(t.Context(), allUsers, "All", "Hear!"))(t); n != 2 {
		t.Errorf("%d users were notified; want 2", n)
	}
	must(db.Notify(t.Context(), onlyUsers(ann.ID, bob.ID), "Two", ""))(t)
	if n := must(db.Notify(t.Context(), normalUsers, "Normal", "Hear!"))(t); n != 1 {
		t.Errorf("%d users were notified; want the normal one", n)
	}
	late := addUser(t, db, "late")
	f(ann, "Normal", "Two", "All")
	f(bob, "Two", "All")
	f(late)

	// Reading marks a broadcast as read for one user only.
	forNormal := unread(t, db, ann.ID)[0].ID
	for range 2 {
		if got := must(db.ReadNotification(t.Context(), ann.ID, forNormal))(t); got.Title != "Normal" || got.Content != "Hear!" || got.SentAt.IsZero() {
			t.Errorf("it says %+v", got)
		}
	}
	f(ann, "Two", "All")
	all := unread(t, db, ann.ID)[1].ID
	for _, no := range []struct {
		user core.User
		id   uuid.UUID
	}{{bob, forNormal}, {late, forNormal}, {late, all}, {core.User{ID: late.ID + 100}, all}} {
		_, err := db.ReadNotification(t.Context(), no.user.ID, no.id)
		wantKind(t, err, fault.NotFound)
	}

	permit(ann, core.Administrator)
	f(ann, "Two", "All")
	must(db.ReadNotification(t.Context(), ann.ID, forNormal))(t) // again
	permit(bob, core.Normal)
	f(bob, "Normal", "Two", "All")

	// The read marks of a user are deleted with the user.
	must(db.ReadNotification(t.Context(), bob.ID, all))(t)
	if err := db.DeleteUser(t.Context(), credentialsOf(bob)); err != nil {
		t.Fatal(err)
	}
	f(ann, "Two", "All")
}

// Reading a broadcast while the user is deleted returns no notification.
func TestReadABroadcastWhileDeleted(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	must(db.Notify(t.Context(), allUsers, "All", "Hear!"))(t)
	id := unread(t, db, ann.ID)[0].ID
	other := beginLockTx(t, address)
	other.exec(t, "DELETE FROM users WHERE uid = $1", ann.ID)

	read := make(chan error, 1)
	go func() {
		_, err := db.ReadNotification(t.Context(), ann.ID, id)
		read <- err
	}()
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-read, fault.NotFound)
}

// Concurrent requests that read a broadcast add one read mark.
func TestReadABroadcastInParallel(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann := addUser(t, db, "ann")
	must(db.Notify(t.Context(), allUsers, "All", "Hear!"))(t)
	id := unread(t, db, ann.ID)[0].ID
	outcomes := make(chan error, 20)
	for range cap(outcomes) {
		go func() {
			_, err := db.ReadNotification(t.Context(), ann.ID, id)
			outcomes <- err
		}()
	}
	if got := countKinds(t, outcomes); got[nil] != cap(outcomes) {
		t.Errorf("outcomes %v; want %d successes", got, cap(outcomes))
	}
	var reads int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM broadcast_reads").Scan(&reads); err != nil {
		t.Fatal(err)
	}
	if reads != 1 {
		t.Errorf("it was read %d times; want once", reads)
	}
}

// A broadcast to 100,000 users inserts one message, and locks no user.
func TestBroadcastToMany(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	conn := postgrestest.Conn(t, address)
	const users = 100_000
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO users (email, email_key, nickname, password_hash)
		SELECT n || '@example.com', n || '@example.com', 'N', 'x' FROM generate_series(1, $1::int) n`, users); err != nil {
		t.Fatal(err)
	}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users ORDER BY uid LIMIT 1 FOR UPDATE") // which must not block the broadcast
	if n := must(db.Notify(t.Context(), allUsers, "All", "Hear!"))(t); n != users {
		t.Errorf("%d users were notified; want %d", n, users)
	}
	var rows int
	if err := conn.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM broadcasts) + (SELECT count(*) FROM notifications) + (SELECT count(*) FROM broadcast_reads)`,
	).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 2 {
		t.Errorf("%d rows were written; want a message and its broadcast", rows)
	}
	for _, user := range []core.UserID{2, users / 2, users} {
		if diff := cmp.Diff([]string{"All"}, titles(t, db, user)); diff != "" {
			t.Errorf("unread by user %d (-want +got):\n%s", user, diff)
		}
	}
}

func TestTrimNotifications(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann := addUser(t, db, "ann")
	for range 2 {
		must(db.Notify(t.Context(), allUsers, "Old", ""))(t)
	}
	year := 365 * 24 * time.Hour
	now := time.Now()
	notifications := core.NewNotifications(db, year, func() time.Time { return now })
	must(db.ReadNotification(t.Context(), ann.ID, unread(t, db, ann.ID)[0].ID))(t)
	if n := must(notifications.Trim(t.Context()))(t); n != 0 {
		t.Errorf("%d messages were trimmed at once", n)
	}
	if _, err := conn.Exec(t.Context(), "UPDATE messages SET sent_at = $1", now.Add(-year-time.Second)); err != nil {
		t.Fatal(err)
	}
	must(db.Notify(t.Context(), onlyUsers(ann.ID), "New", ""))(t)
	if n := must(core.NewNotifications(db, 0, time.Now).Trim(t.Context()))(t); n != 0 {
		t.Errorf("%d messages were trimmed although the retention is unlimited", n)
	}
	if n := must(notifications.Trim(t.Context()))(t); n != 2 {
		t.Errorf("%d messages were trimmed after a year; want 2", n)
	}
	var left int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM notifications JOIN messages USING (mid) WHERE title = 'New'").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 1 {
		t.Errorf("%d notifications are left; want the fresh one", left)
	}
}

// An announcement is one entry in the audit log, whatever the number of receivers.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	boss := addAdministrator(t, db, "boss", core.Administrator)
	ann, bob, cid := addUser(t, db, "ann"), addUser(t, db, "bob"), addUser(t, db, "cid")
	f := func(to core.Recipients, want int) {
		t.Helper()
		if got := must(db.Announce(t.Context(), boss, to, "Title", "Content"))(t); got != want {
			t.Errorf("%d users are notified; want %d", got, want)
		}
	}
	f(allUsers, 4)
	f(normalUsers, 3)
	f(onlyUsers(bob.ID), 1)
	f(core.Recipients{EmailKey: "cid@example.com"}, 1)
	for user, want := range map[core.UserID]int{boss.ID: 1, ann.ID: 2, bob.ID: 3, cid.ID: 3} {
		if got := len(unread(t, db, user)); got != want {
			t.Errorf("user %d has %d notifications; want %d", user, got, want)
		}
	}
	for _, missing := range []core.Recipients{onlyUsers(cid.ID + 100), onlyUsers(0), {EmailKey: "dan@example.com"}} {
		_, err := db.Announce(t.Context(), boss, missing, "Title", "Content")
		wantKind(t, err, fault.NotFound)
	}
	if err := db.SetPermission(t.Context(), boss.ID, core.Normal); err != nil {
		t.Fatal(err)
	}
	_, err := db.Announce(t.Context(), boss, allUsers, "Title", "Content")
	wantKind(t, err, fault.Forbidden)
	if diff := cmp.Diff([]string{
		fmt.Sprintf(`notification.send user:%d {"title": "Title", "users": 1}`, cid.ID),
		fmt.Sprintf(`notification.send user:%d {"title": "Title", "users": 1}`, bob.ID),
		`notification.send users:normal {"title": "Title", "users": 3}`,
		`notification.send users:all {"title": "Title", "users": 4}`,
	}, summaries(auditLog(t, db))); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}
