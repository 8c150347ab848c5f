package postgres_test

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

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

	if n := must(db.Notify(t.Context(), []core.UserID{ann.ID, ann.ID, ann.ID + 100}, "Title", ""))(t); n != 1 {
		t.Errorf("%d users were told; want 1", n)
	}
	expect(1, 1)
	if n := must(db.Notify(t.Context(), []core.UserID{ann.ID + 100}, "Title", ""))(t); n != 0 {
		t.Errorf("%d users were told; want none", n)
	}
	expect(1, 1) // what is said to nobody is not kept
	if n := must(db.NotifyAll(t.Context(), "Title", ""))(t); n != 2 {
		t.Errorf("%d users were told; want 2", n)
	}
	expect(2, 3)

	// What nobody else was told goes with a user.
	if err := db.DeleteUser(t.Context(), proofOf(ann)); err != nil {
		t.Fatal(err)
	}
	expect(1, 1)
	if notified := must(db.Notified(t.Context(), bob.ID))(t); !notified {
		t.Error("the other user's notification is gone")
	}
	if notified := must(db.Notified(t.Context(), ann.ID))(t); notified {
		t.Error("the deleted user has a notification")
	}
}

// Who is deleted while all are told is left out.
func TestNotifyAllWhileAUserIsDeleted(t *testing.T) {
	t.Parallel()
	db, address := named(t)
	addUser(t, db, "ann")
	bob := addUser(t, db, "bob")
	other := hold(t, address)
	other.do(t, "DELETE FROM users WHERE uid = $1", bob.ID)

	told := make(chan int, 1)
	go func() {
		n, err := db.NotifyAll(t.Context(), "Title", "")
		if err != nil {
			t.Error(err)
		}
		told <- n
	}()
	other.releaseOnceWaitedFor(t, 1)
	if n := <-told; n != 1 {
		t.Errorf("%d users were told; want the one who is left", n)
	}
}

func TestTrimNotifications(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann := addUser(t, db, "ann")
	for range 2 {
		must(db.NotifyAll(t.Context(), "Old", ""))(t)
	}
	year := 365 * 24 * time.Hour
	now := time.Now()
	notifications := core.NewNotifications(db, year, func() time.Time { return now })
	if n := must(notifications.Trim(t.Context()))(t); n != 0 {
		t.Errorf("%d messages were trimmed at once", n)
	}
	if _, err := conn.Exec(t.Context(), "UPDATE messages SET sent_at = $1", now.Add(-year-time.Second)); err != nil {
		t.Fatal(err)
	}
	must(db.Notify(t.Context(), []core.UserID{ann.ID}, "New", ""))(t)
	if n := must(core.NewNotifications(db, 0, time.Now).Trim(t.Context()))(t); n != 0 {
		t.Errorf("%d messages were trimmed although they are kept for ever", n)
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
