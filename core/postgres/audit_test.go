package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var adminAddr = netip.MustParseAddr("2001:db8::1")

// addAdministrator adds a user with a permission, and returns it as an actor.
func addAdministrator(t *testing.T, db store, name string, permission core.Permission) core.Actor {
	t.Helper()
	user := addUser(t, db, name)
	do(t, db.ForcePermission(t.Context(), user.ID, permission))
	return core.Actor{ID: user.ID, Permission: permission, From: adminAddr}
}

// auditLog returns the whole audit log, the latest action first. The console has words for the actions
// in core.AuditActions.
func auditLog(t *testing.T, db store) []core.AuditEntry {
	t.Helper()
	entries := must(db.AuditLog(t.Context(), core.AuditQuery{Limit: 1000}))(t)
	for _, e := range entries {
		testenv.Equal(t, slices.Contains(core.AuditActions, e.Action), true, "AuditActions in core/audit.go has %s", e.Action)
	}
	return entries
}

// summaries returns one line for each entry, in the order given.
func summaries(entries []core.AuditEntry) []string {
	var acts []string
	for _, e := range entries {
		acts = append(acts, fmt.Sprintf("%s %s %s", e.Action, e.Subject, e.Details))
	}
	return acts
}

// An entry keeps actor and subject after both are deleted.
func TestAuditLogOutlivesUsers(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann := addAdministrator(t, db, "ann", core.Administrator)
	bob := addUser(t, db, "bob")
	must(db.SetPermission(t.Context(), ann, bob.ID, core.Banned, core.Ban{}))(t)
	db.exec(t, "DELETE FROM users")

	entries := auditLog(t, db)
	if len(entries) != 1 {
		t.Fatalf("there are %d entries; want 1", len(entries))
	}
	got := entries[0]
	testenv.Check(t, !got.ActedAt.IsZero() && got.ID >= 1, "the entry is %d, of %s", got.ID, got.ActedAt)
	want := core.AuditEntry{
		ID: got.ID, ActedAt: got.ActedAt,
		Actor: ann.ID, ActorEmail: "ann@example.com", Address: adminAddr, Action: "user.permission", Subject: fmt.Sprintf("user:%d", bob.ID),
		Details: []byte(`{"to": -1, "from": 0, "email": "bob@example.com", "nickname": "bob"}`),
	}
	diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }))
	testenv.Check(t, diff == "", "the entry (-want +got):\n%s", diff)
}

// No statement can change entries, not even one that matches none.
func TestAuditLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann := addAdministrator(t, db, "ann", core.Administrator)
	must(db.SetPermission(t.Context(), ann, addUser(t, db, "bob").ID, core.Banned, core.Ban{}))(t)
	want := auditLog(t, db)

	for _, replica := range []bool{false, true} {
		if replica { // which disables ordinary triggers
			_, err := db.conn().Exec(t.Context(), "SET session_replication_role = replica")
			if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "42501" {
				break
			}
			do(t, err)
		}
		for _, sql := range []string{
			"UPDATE audit_log SET action = 'nothing'",
			"UPDATE audit_log SET action = 'nothing' WHERE false",
			"DELETE FROM audit_log",
			"DELETE FROM audit_log WHERE id = 1",
			"TRUNCATE audit_log",
			"INSERT INTO audit_log OVERRIDING SYSTEM VALUE SELECT * FROM audit_log ON CONFLICT (id) DO UPDATE SET action = 'nothing'",
		} {
			_, err := db.conn().Exec(t.Context(), sql)
			testenv.ErrorHas(t, err, "only be added to", "%s, as a replica: %t", sql, replica)
		}
	}
	cmptest.Same(t, summaries(auditLog(t, db)), summaries(want), "the log")
}

func TestAuditLogIsFiltered(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann, root := addAdministrator(t, db, "ann", core.Administrator), addAdministrator(t, db, "root", core.SuperAdministrator)
	bob, eve := addUser(t, db, "bob"), addUser(t, db, "eve")
	for _, act := range []struct {
		by         core.Actor
		user       core.UserID
		permission core.Permission
	}{{ann, bob.ID, -1}, {ann, eve.ID, -1}, {root, bob.ID, 0}, {root, bob.ID, 1}, {ann, eve.ID, 0}} {
		must(db.SetPermission(t.Context(), act.by, act.user, act.permission, core.Ban{}))(t)
	}
	all := auditLog(t, db)
	if len(all) != 5 {
		t.Fatalf("there are %d entries; want 5", len(all))
	}
	bobs := fmt.Sprintf("user:%d", bob.ID)
	f := func(query core.AuditQuery, want ...int) {
		t.Helper()
		query.Limit = max(query.Limit, 1)
		var wanted []core.AuditEntry
		for _, i := range want {
			wanted = append(wanted, all[i])
		}
		cmptest.Same(t, summaries(must(db.AuditLog(t.Context(), query))(t)), summaries(wanted), "%+v", query)
	}

	f(core.AuditQuery{}, 0)
	f(core.AuditQuery{Limit: 9}, 0, 1, 2, 3, 4)
	f(core.AuditQuery{Limit: 2, Before: all[1].ID}, 2, 3)
	f(core.AuditQuery{Limit: 9, Before: all[4].ID})
	f(core.AuditQuery{Limit: 9, Actor: &ann.ID}, 0, 3, 4)
	f(core.AuditQuery{Limit: 9, Subject: bobs}, 1, 2, 4)
	f(core.AuditQuery{Limit: 9, Subject: bobs, Actor: &ann.ID}, 4)
	f(core.AuditQuery{Limit: 9, Action: "user.permission", Before: all[0].ID}, 1, 2, 3, 4)
	f(core.AuditQuery{Limit: 9, Action: "user"})

	// Actions on the command line have no actor.
	must(db.SetPermission(t.Context(), core.CLIActor, root.ID, core.Normal, core.Ban{}))(t)
	latest := must(db.AuditLog(t.Context(), core.AuditQuery{Limit: 9, Actor: new(core.UserID)}))(t)
	testenv.Check(t, len(latest) == 1 && latest[0].Actor == 0 && latest[0].ActorEmail == "" &&
		!latest[0].Address.IsValid(), "the actions without an actor are %+v", latest)
	f(core.AuditQuery{Limit: 9, Subject: "user:"})
}

// Permissions are checked after the locks are acquired, and so against the new state.
func TestAuthorityIsCheckedAfterWaiting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, meanwhile string
		want            fault.Kind
	}{
		{"the subject is promoted", "UPDATE users SET permission = 1 WHERE nickname = 'bob'", fault.Forbidden},
		{"the subject is deleted", "DELETE FROM users WHERE nickname = 'bob'", fault.NotFound},
		{"the actor is demoted", "UPDATE users SET permission = 0 WHERE nickname = 'ann'", fault.Forbidden},
		{"the actor is banned", "UPDATE users SET permission = -1 WHERE nickname = 'ann'", fault.Banned},
		{"the actor is deleted", "DELETE FROM users WHERE nickname = 'ann'", fault.Unauthenticated},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			bob := addUser(t, db, "bob") // locked before the actor
			ann := addAdministrator(t, db, "ann", core.Administrator)
			eve := addUser(t, db, "eve") // locked after the actor
			other := db.lock(t, test.meanwhile)

			acted := make(chan error, 2)
			subjects := []core.UserID{bob.ID}
			if strings.Contains(test.name, "actor") {
				subjects = append(subjects, eve.ID)
			}
			for _, subject := range subjects {
				go func() { acted <- errOf(db.SetPermission(t.Context(), ann, subject, core.Banned, core.Ban{})) }()
			}
			other.commitOnceBlocked(t, len(subjects))
			for range subjects {
				wantKind(t, <-acted, test.want)
			}
			cmptest.Same(t, summaries(auditLog(t, db)), []string(nil), "the log after failed actions")
		})
	}
}

// Actor and subject stay locked until the action is committed.
func TestAdminActionLocksActorAndSubject(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann, bob := addAdministrator(t, db, "ann", core.Administrator), addUser(t, db, "bob")
	other := db.lock(t, "LOCK TABLE audit_log IN SHARE MODE") // which an action writes last

	do(t, other.delays(t, func() error { return errOf(db.SetPermission(t.Context(), ann, bob.ID, core.Banned, core.Ban{})) }, func() {
		db.hasCount(t, 0, "SELECT count(*) FROM (SELECT FROM users FOR NO KEY UPDATE SKIP LOCKED) free")
	}))
}

// The result of concurrent actions is that of a serial order: each entry of the log was allowed
// by the state after those before it.
func TestConcurrentPermissionChanges(t *testing.T) {
	t.Parallel()
	db := open(t)
	permissions := map[string]core.Permission{} // by subject
	var actors []core.Actor
	for i, permission := range []core.Permission{2, 1, 1, 1, 1, 0, 0, 0} {
		a := addAdministrator(t, db, fmt.Sprintf("user%d", i), permission)
		actors = append(actors, a)
		permissions[fmt.Sprintf("user:%d", a.ID)] = permission
	}

	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for range 60 {
				actor, subject := actors[rand.IntN(len(actors))], actors[rand.IntN(len(actors))]
				actor.Permission = core.SuperAdministrator // so that only the store checks it
				_, err := db.SetPermission(t.Context(), actor, subject.ID, core.Permission(rand.IntN(3)-1), core.Ban{})
				if kind := fault.KindOf(err); err != nil && kind != fault.Forbidden && kind != fault.Banned {
					t.Errorf("user %d on user %d: %v", actor.ID, subject.ID, err)
				}
			}
		})
	}
	group.Wait()

	entries := auditLog(t, db)
	testenv.Check(t, len(entries) >= 10, "only %d actions were allowed", len(entries))
	for _, e := range slices.Backward(entries) {
		var changed struct{ From, To core.Permission }
		do(t, json.Unmarshal(e.Details, &changed))
		actor := permissions[fmt.Sprintf("user:%d", e.Actor)]
		if before := permissions[e.Subject]; before != changed.From || actor < 1 || before >= actor || changed.To >= actor {
			t.Errorf("an actor of permission %d set permission %d for a user of permission %d; the entry is %s", actor, changed.To, before, e.Details)
		}
		permissions[e.Subject] = changed.To
	}
	for i, a := range actors {
		want := permissions[fmt.Sprintf("user:%d", a.ID)]
		got := must(db.UserByEmail(t.Context(), fmt.Sprintf("user%d@example.com", i)))(t)
		testenv.Equal(t, got.Permission, want, "by the log, the permission of user %d", a.ID)
	}
}
