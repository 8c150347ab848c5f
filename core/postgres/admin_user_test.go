package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// userActions are all actions on users.
var userActions = map[core.AuditAction]func(context.Context, core.AccountStore, core.Actor, core.UserID) error{
	"user.nickname": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetNickname(ctx, admin, user, "Zoë"))
	},
	"user.email": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetEmail(ctx, admin, core.EmailChange{User: user, Email: "zoe@example.com", EmailKey: "zoe@example.com"}))
	},
	"user.password": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetPassword(ctx, admin, core.PasswordChange{User: user, NewHash: "fresh"}))
	},
	"user.verified": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetVerified(ctx, admin, user, true))
	},
	"user.score": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetScore(ctx, admin, user, 100))
	},
	"user.permission": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return errOf(db.SetPermission(ctx, admin, user, core.Banned, core.Ban{}))
	},
	"user.delete": func(ctx context.Context, db core.AccountStore, admin core.Actor, user core.UserID) error {
		return db.DeleteUser(ctx, admin, byID(user))
	},
}

// An action that cannot be logged is rolled back. One that loses a conflict is retried, and is
// logged once.
func TestActionAndAuditEntryAreAtomic(t *testing.T) {
	t.Parallel()
	for action, run := range userActions {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			s := &sessionTest{db: db, user: addUser(t, db, "bob"), now: time.Now().UTC().Truncate(time.Second)}
			ann := addAdministrator(t, db, "ann", core.Administrator)
			token := s.open(t)
			before := must(db.UserByEmail(t.Context(), "bob@example.com"))(t)
			db.failWrites(t, "40P01", "audit_log")
			db.exec(t, "SELECT setval('tries', -4)")
			wantKind(t, run(t.Context(), db, ann, s.user.ID), fault.Unavailable)
			after := must(db.UserByEmail(t.Context(), "bob@example.com"))(t)
			cmptest.Same(t, after, before, "the user after an action that is not logged")
			s.wantWorking(t, "after an action that is not logged", token)
			db.exec(t, "SELECT setval('tries', -3)")
			testenv.Is(t, run(t.Context(), db, ann, s.user.ID), nil, "after three losses")
			entries := auditLog(t, db)
			testenv.Check(t, len(entries) == 1 && entries[0].Action == action, "the log %q; want %s", summaries(entries), action)
			if action == "user.permission" {
				return // the session stays to report the ban
			}
			ends := action == "user.password" || action == "user.delete"
			testenv.Equal(t, s.isValid(t, token), !ends, "the session works after the action")
		})
	}
}

// A user deleted by an administrator names the same keys as one that deletes their own account.
func TestAdminDeletionNamesItsKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann, bob := addAdministrator(t, db, "ann", core.Administrator), addUser(t, db, "bob")
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false))
	addTexture(t, db, texture(bob.ID, skin.Classic, "public", true))
	own, anns := addPlayer(t, db, bob.ID, "Own"), addPlayer(t, db, ann.ID, "Anns")
	do(t, db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, private.ID, "gift", core.Pricing{}))
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), anns.ID, core.TextureSelection{Skin: &private.ID}))(t)
	calls := db.changed.Load()
	wantKeys := watchChanges(t, db)

	wantKind(t, db.DeleteUser(t.Context(), ann, byID(ann.ID)), fault.Forbidden)
	wantKeys("a deletion that is refused")
	do(t, db.DeleteUser(t.Context(), ann, byID(bob.ID)))
	wantKeys("a deleted user", slices.Concat([]edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))}, playerKeys(own), playerKeys(anns), textureKeys(private))...)
	testenv.Equal(t, db.changed.Load()-calls, 1, "calls of onChange")
}
