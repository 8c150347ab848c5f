package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var allUsers, normalUsers = core.Recipients{Audience: core.AllUsers}, core.Recipients{Audience: core.NormalUsers}

func onlyUsers(users ...core.UserID) core.Recipients { return core.Recipients{Users: users} }

func TestNotify(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	expect := func(messages, notifications int) {
		t.Helper()
		db.hasCount(t, messages, "SELECT count(*) FROM messages")
		db.hasCount(t, notifications, "SELECT count(*) FROM notifications")
	}

	n := must(db.Notify(t.Context(), onlyUsers(ann.ID, ann.ID, ann.ID+100), core.Message{Title: "Title"}))(t)
	testenv.Equal(t, n, 1, "users were notified")
	expect(1, 1)
	testenv.Equal(t, must(db.Notify(t.Context(), onlyUsers(ann.ID+100), core.Message{Title: "Title"}))(t), 0, "users were notified")
	expect(1, 1) // a message without receivers is not stored
	testenv.Equal(t, must(db.Notify(t.Context(), allUsers, core.Message{Title: "Title"}))(t), 2, "users were notified")
	expect(2, 1) // a broadcast is one row

	// A message is deleted with its only receiver.
	do(t, db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)))
	expect(1, 0)
	testenv.Equal(t, must(db.HasNotifications(t.Context(), bob.ID))(t), true, "the other user has the notification")
	testenv.Equal(t, must(db.HasNotifications(t.Context(), ann.ID))(t), false, "the deleted user has a notification")
}

// titles returns the titles of a user's unread notifications, the newest first.
func titles(t *testing.T, db store, user core.UserID) []string {
	t.Helper()
	var all []string
	for _, n := range unread(t, db, user) {
		all = append(all, n.Title)
	}
	return all
}

func unread(t *testing.T, db store, user core.UserID) []core.UnreadNotification {
	t.Helper()
	s := &sessionTest{db: db, user: core.User{ID: user}, now: time.Now().UTC().Truncate(time.Second)}
	return must(db.Unread(t.Context(), s.verified(s.open(t))))(t)
}

// A broadcast is addressed to the users that existed when it was sent; one for normal users, to
// those that are normal when they look. A broadcast that a user has read stays readable for
// that user.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	db := open(t)
	testenv.Equal(t, must(db.Notify(t.Context(), normalUsers, core.Message{Title: "None"}))(t), 0, "users were notified")
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	permit := func(user core.User, permission core.Permission) {
		t.Helper()
		do(t, db.ForcePermission(t.Context(), user.ID, permission))
	}
	f := func(user core.User, want ...string) {
		t.Helper()
		cmptest.Same(t, titles(t, db, user.ID), want, "unread by %s", user.Nickname)
	}
	permit(bob, core.Administrator)

	testenv.Equal(t, must(db.Notify(t.Context(), allUsers, core.Message{Title: "All", Content: "Hear!"}))(t), 2, "users were notified")
	must(db.Notify(t.Context(), onlyUsers(ann.ID, bob.ID), core.Message{Title: "Two"}))(t)
	testenv.Equal(t, must(db.Notify(t.Context(), normalUsers, core.Message{Title: "Normal", Content: "Hear!"}))(t), 1, "users were notified")
	late := addUser(t, db, "late")
	f(ann, "Normal", "Two", "All")
	f(bob, "Two", "All")
	f(late)

	// Reading marks a broadcast as read for one user only.
	forNormal := unread(t, db, ann.ID)[0].ID
	for range 2 {
		got := must(db.ReadNotification(t.Context(), ann.ID, forNormal))(t)
		testenv.Check(t, got.Title == "Normal" && got.Content == "Hear!" && !got.SentAt.IsZero(), "it says %+v", got)
	}
	f(ann, "Two", "All")
	all := unread(t, db, ann.ID)[1].ID
	for _, no := range []struct {
		user core.User
		id   uuid.UUID
	}{{bob, forNormal}, {late, forNormal}, {late, all}, {core.User{ID: late.ID + 100}, all}} {
		wantKind(t, errOf(db.ReadNotification(t.Context(), no.user.ID, no.id)), fault.NotFound)
	}

	permit(ann, core.Administrator)
	f(ann, "Two", "All")
	must(db.ReadNotification(t.Context(), ann.ID, forNormal))(t) // again
	permit(bob, core.Normal)
	f(bob, "Normal", "Two", "All")

	// The read marks of a user are deleted with the user.
	must(db.ReadNotification(t.Context(), bob.ID, all))(t)
	do(t, db.DeleteUser(t.Context(), as(bob.ID), credentialsOf(bob)))
	f(ann, "Two", "All")
}

// Reading a broadcast while the user is deleted returns no notification.
func TestReadABroadcastWhileDeleted(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	must(db.Notify(t.Context(), allUsers, core.Message{Title: "All", Content: "Hear!"}))(t)
	id := unread(t, db, ann.ID)[0].ID
	other := db.lock(t, "DELETE FROM users WHERE uid = $1", ann.ID)

	read := func() error { return errOf(db.ReadNotification(t.Context(), ann.ID, id)) }
	wantKind(t, other.delays(t, read), fault.NotFound)
}

// Concurrent requests that read a broadcast add one read mark.
func TestReadABroadcastInParallel(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	must(db.Notify(t.Context(), allUsers, core.Message{Title: "All", Content: "Hear!"}))(t)
	id := unread(t, db, ann.ID)[0].ID
	atOnce(t, 20, 20, 0, func(int) error { return errOf(db.ReadNotification(t.Context(), ann.ID, id)) })
	db.hasCount(t, 1, "SELECT count(*) FROM broadcast_reads")
}

// A broadcast to 100,000 users inserts one message, and locks no user.
func TestBroadcastToMany(t *testing.T) {
	t.Parallel()
	db := open(t)
	const users = 100_000
	db.addUsers(t, users)
	db.lock(t, "SELECT FROM users ORDER BY uid LIMIT 1 FOR UPDATE") // which must not block the broadcast
	testenv.Equal(t, must(db.Notify(t.Context(), allUsers, core.Message{Title: "All", Content: "Hear!"}))(t), users, "users were notified")
	db.hasCount(t, 2, `
		SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM broadcasts) + (SELECT count(*) FROM notifications) + (SELECT count(*) FROM broadcast_reads)`)
	for _, user := range []core.UserID{2, users / 2, users} {
		cmptest.Same(t, titles(t, db, user), []string{"All"}, "unread by user %d", user)
	}
}

func TestTrimNotifications(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	for range 2 {
		must(db.Notify(t.Context(), allUsers, core.Message{Title: "Old"}))(t)
	}
	year := 365 * 24 * time.Hour
	now := time.Now()
	notifications := core.NewNotifications(db, year, func() time.Time { return now })
	must(db.ReadNotification(t.Context(), ann.ID, unread(t, db, ann.ID)[0].ID))(t)
	testenv.Equal(t, must(notifications.Trim(t.Context()))(t), 0, "messages were trimmed at once")
	db.exec(t, "UPDATE messages SET sent_at = $1", now.Add(-year-time.Second))
	must(db.Notify(t.Context(), onlyUsers(ann.ID), core.Message{Title: "New"}))(t)
	endless := core.NewNotifications(db, 0, time.Now)
	testenv.Equal(t, must(endless.Trim(t.Context()))(t), 0, "messages were trimmed although the retention is unlimited")
	testenv.Equal(t, must(notifications.Trim(t.Context()))(t), 2, "messages were trimmed after a year")
	db.hasCount(t, 1, "SELECT count(*) FROM notifications JOIN messages USING (mid) WHERE title = 'New'")
}

// An announcement is one entry in the audit log, whatever the number of receivers.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	db := open(t)
	boss := addAdministrator(t, db, "boss", core.Administrator)
	ann, bob, cid := addUser(t, db, "ann"), addUser(t, db, "bob"), addUser(t, db, "cid")
	f := func(to core.Recipients, want int) {
		t.Helper()
		testenv.Equal(t, must(db.Announce(t.Context(), boss, to, "Title", "Content"))(t), want, "users are notified")
	}
	f(allUsers, 4)
	f(normalUsers, 3)
	f(onlyUsers(bob.ID), 1)
	f(core.Recipients{EmailKey: "cid@example.com"}, 1)
	for user, want := range map[core.UserID]int{boss.ID: 1, ann.ID: 2, bob.ID: 3, cid.ID: 3} {
		testenv.Equal(t, len(unread(t, db, user)), want, "notifications of user %d", user)
	}
	for _, missing := range []core.Recipients{onlyUsers(cid.ID + 100), onlyUsers(0), {EmailKey: "dan@example.com"}} {
		wantKind(t, errOf(db.Announce(t.Context(), boss, missing, "Title", "Content")), fault.NotFound)
	}
	do(t, db.ForcePermission(t.Context(), boss.ID, core.Normal))
	wantKind(t, errOf(db.Announce(t.Context(), boss, allUsers, "Title", "Content")), fault.Forbidden)
	cmptest.Same(t, summaries(auditLog(t, db)), []string{
		fmt.Sprintf(`notification.send user:%d {"title": "Title", "users": 1}`, cid.ID),
		fmt.Sprintf(`notification.send user:%d {"title": "Title", "users": 1}`, bob.ID),
		`notification.send users:normal {"title": "Title", "users": 3}`,
		`notification.send users:all {"title": "Title", "users": 4}`,
	}, "the audit log")
}
