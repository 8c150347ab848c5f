package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// userActions are all actions on users.
var userActions = map[string]func(context.Context, core.UserAdminStore, core.Actor, core.UserID) error{
	"user.nickname": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetNicknameBy(ctx, admin, user, "Zoë")
		return err
	},
	"user.email": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetEmailBy(ctx, admin, user, core.EmailChange{Email: "zoe@example.com", EmailKey: "zoe@example.com"})
		return err
	},
	"user.password": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetPasswordBy(ctx, admin, core.PasswordChange{User: user, NewHash: "fresh"})
		return err
	},
	"user.verified": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetVerifiedBy(ctx, admin, user, true)
		return err
	},
	"user.score": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetScoreBy(ctx, admin, user, 100)
		return err
	},
	"user.permission": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		_, err := db.SetPermissionBy(ctx, admin, user, core.Banned)
		return err
	},
	"user.delete": func(ctx context.Context, db core.UserAdminStore, admin core.Actor, user core.UserID) error {
		return db.(core.UserDirectoryStore).DeleteUserBy(ctx, admin, user) //nolint:errcheck,forcetypeassert // it is both
	},
}

// An action that cannot be logged is rolled back. One that loses a conflict is retried, and is
// logged once.
func TestActionAndAuditEntryAreAtomic(t *testing.T) {
	t.Parallel()
	for action, run := range userActions {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			address := postgrestest.URL(t)
			db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
			s := &sessionTest{db: db, user: addUser(t, db, "bob"), now: time.Now().UTC().Truncate(time.Second)}
			ann := addAdministrator(t, db, "ann", core.Administrator)
			token := s.open(t)
			before := must(db.UserByEmail(t.Context(), "bob@example.com"))(t)
			exec := func(sql string) {
				t.Helper()
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			exec(`
				CREATE SEQUENCE tries MINVALUE -100; -- which no rollback sets back
				CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
					BEGIN
						IF nextval('tries') <= 0 THEN
							RAISE EXCEPTION 'conflict' USING ERRCODE = '40P01';
						END IF;
						RETURN new;
					END
				$$;
				CREATE TRIGGER fail BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION fail()`)

			exec("SELECT setval('tries', -4)")
			wantKind(t, run(t.Context(), db, ann, s.user.ID), fault.Unavailable)
			if diff := cmp.Diff(before, must(db.UserByEmail(t.Context(), "bob@example.com"))(t)); diff != "" {
				t.Errorf("an action that is not logged changes the user (-before +after):\n%s", diff)
			}
			if !s.isValid(t, token) {
				t.Error("an action that is not logged ends a session")
			}
			exec("SELECT setval('tries', -3)")
			if err := run(t.Context(), db, ann, s.user.ID); err != nil {
				t.Fatalf("after three losses: %v", err)
			}
			if entries := auditLog(t, db); len(entries) != 1 || entries[0].Action != action {
				t.Errorf("the log holds %q; want one entry, of %s", summaries(entries), action)
			}
			if action == "user.permission" {
				return // the session stays to report the ban
			}
			if ends := action == "user.password" || action == "user.delete"; s.isValid(t, token) == ends {
				t.Errorf("the session has ended: %t; want %t", !ends, ends)
			}
		})
	}
}

// A user deleted by an administrator names the same keys as one that deletes their own account.
func TestAdminDeletionNamesItsKeys(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addAdministrator(t, db, "ann", core.Administrator), addUser(t, db, "bob")
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false))
	addTexture(t, db, texture(bob.ID, skin.Classic, "public", true))
	own, anns := addPlayer(t, db, bob.ID, "Own"), addPlayer(t, db, ann.ID, "Anns")
	if err := db.AddClosetItem(t.Context(), ann.ID, private.ID, "gift", core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	must(db.SetPlayerTextures(t.Context(), ann.ID, anns.ID, core.TextureSelection{Skin: &private.ID}))(t)
	calls := 0
	db.OnChange(func() { calls++ })
	wantKeys := watchChanges(t, db)

	wantKind(t, db.DeleteUserBy(t.Context(), ann, ann.ID), fault.Forbidden)
	wantKeys("a deletion that is refused")
	if err := db.DeleteUserBy(t.Context(), ann, bob.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys("a deleted user", slices.Concat([]edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))}, playerKeys(own), playerKeys(anns), textureKeys(private))...)
	if calls != 1 {
		t.Errorf("onChange was called %d times; want once", calls)
	}
}
