package postgres_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// DeleteTextureBy also settles the reports about the texture, in one action.
func TestDeleteTextureBy(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	target := r.texture(t, "target", true)
	report := r.report(t, r.bob, target)
	f := func(tid core.TextureID, want fault.Kind) {
		t.Helper()
		wantKind(t, r.db.DeleteTextureBy(t.Context(), r.by, tid), want)
	}
	r.permit(t, r.ann, core.SuperAdministrator)
	f(target.ID, fault.Forbidden)
	r.permit(t, r.ann, core.Normal)
	f(target.ID+100, fault.NotFound)
	wantKeys := watchChanges(t, r.db)
	if err := r.db.DeleteTextureBy(t.Context(), r.by, target.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys("the deletion", textureKeys(target)...)
	f(target.ID, fault.NotFound)
	if got := r.list(t, ""); got[0].State != core.ReportDeleted || len(unread(t, r.db, r.bob.ID)) != 1 {
		t.Errorf("the reports are %+v; want it settled, and the reporter notified", got)
	}
	r.wantAuditEntries(t, fmt.Sprintf(`texture.delete texture:%d {"name": "target", "reports": [%d], "uploader": %d}`, target.ID, report, r.ann.ID))

	// A texture without an uploader, and the administrator's own.
	orphan := addTexture(t, r.db, texture(r.cid.ID, skin.Classic, "orphan", true))
	if err := r.db.DeleteUser(t.Context(), credentialsOf(r.cid)); err != nil {
		t.Fatal(err)
	}
	own := addTexture(t, r.db, texture(r.boss.ID, skin.Classic, "own", true))
	for _, tid := range []core.TextureID{orphan.ID, own.ID} {
		if err := r.db.DeleteTextureBy(t.Context(), r.by, tid); err != nil {
			t.Error(err)
		}
	}
	if n := len(r.auditEntries(t)); n != 3 {
		t.Errorf("%d actions are logged; want 3", n)
	}
}

func TestChangeTextureBy(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "x", true)
	addToCloset(t, r.db, r.bob, tid.ID)
	r.permit(t, r.ann, core.Administrator)
	_, err := r.db.ChangeTextureBy(t.Context(), r.by, tid.ID, core.TextureChange{Name: new("N")}, core.Scores{})
	wantKind(t, err, fault.Forbidden)
	r.permit(t, r.ann, core.Normal)
	_, err = r.db.ChangeTextureBy(t.Context(), r.by, tid.ID+100, core.TextureChange{Name: new("N")}, core.Scores{})
	wantKind(t, err, fault.NotFound)
	twin := r.texture(t, "x2", true)
	if _, err := postgrestest.Conn(t, r.address).Exec(t.Context(), "UPDATE textures SET type = 'alex', pixels = (SELECT pixels FROM textures WHERE tid = $1) WHERE tid = $2", tid.ID, twin.ID); err != nil {
		t.Fatal(err)
	}
	_, err = r.db.ChangeTextureBy(t.Context(), r.by, tid.ID, core.TextureChange{Type: new(skin.Slim)}, core.Scores{})
	wantKind(t, err, fault.Duplicate)
	if got, _ := fault.Of(err).Data.(map[string]core.TextureID); got["tid"] != twin.ID {
		t.Errorf("data %v; want tid %d", fault.Of(err).Data, twin.ID)
	}
	r.wantAuditEntries(t)

	wantKeys := watchChanges(t, r.db)
	got := must(r.db.ChangeTextureBy(t.Context(), r.by, tid.ID, core.TextureChange{Name: new("N"), Public: new(false)}, core.Scores{}))(t)
	if got.Name != "N" || got.Public || got.Likes != 1 {
		t.Errorf("changed, it is %+v; want it named N, and only in its uploader's closet", got)
	}
	wantKeys("a texture without a player")
	r.wantAuditEntries(t, fmt.Sprintf(`texture.change texture:%d {"to": {"name": "N", "type": "steve", "public": false}, `+
		`"from": {"name": "x", "type": "steve", "public": true}, "name": "x", "uploader": %d}`, tid.ID, r.ann.ID))
}

// An action locks all its users in the order of uid, the administrator included: while it waits
// for one, it has no lock on later ones.
func TestTextureActionsLockUsersInOrder(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	itemOwner, actor, uploader := addUser(t, db, "keeper"), addUser(t, db, "actor"), addUser(t, db, "uploader")
	if err := db.SetPermission(t.Context(), actor.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	admin := core.Actor{ID: actor.ID, Permission: core.Administrator, From: netip.MustParseAddr("192.0.2.1")}
	act := func(word string, begin func(core.TextureID) error) {
		t.Helper()
		tid := must(db.AddTexture(t.Context(), texture(uploader.ID, skin.Classic, word, true), core.Pricing{}, putOK))(t).ID
		item := db.AddClosetItem(t.Context(), itemOwner.ID, tid, "N", core.Pricing{Refund: true})
		if item == nil {
			_, item = postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE closet_items SET refund = 1 WHERE uid = $1 AND tid = $2", itemOwner.ID, tid)
		}
		if item != nil {
			t.Fatal(item)
		}
		h := beginLockTx(t, address)
		h.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", itemOwner.ID)
		done := make(chan error, 1)
		go func() { done <- begin(tid) }()
		h.waitBlocked(t, 1)
		h.exec(t, "SELECT FROM users WHERE uid IN ($1, $2) FOR UPDATE NOWAIT", actor.ID, uploader.ID)
		h.commitOnceBlocked(t, 1)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
	act("deleted", func(tid core.TextureID) error { return db.DeleteTextureBy(t.Context(), admin, tid) })
	act("hidden", func(tid core.TextureID) error {
		_, err := db.ChangeTextureBy(t.Context(), admin, tid, core.TextureChange{Public: new(false)}, core.Scores{})
		return err
	})
	act("reported", func(tid core.TextureID) error {
		if err := db.AddReport(t.Context(), actor.ID, tid, "R"); err != nil {
			return err
		}
		reports, err := db.Reports(t.Context(), core.ReportQuery{State: core.ReportOpen, Page: 1, PerPage: 1})
		if err == nil {
			_, err = db.SettleReport(t.Context(), admin, reports.Reports[0].ID, core.ReportDeleted)
		}
		return err
	})
	ownTexture := must(db.AddTexture(t.Context(), texture(itemOwner.ID, skin.Classic, "keeper's", true), core.Pricing{}, putOK))(t).ID
	act("liked", func(core.TextureID) error {
		return db.AddClosetItemBy(t.Context(), admin, actor.ID, ownTexture, "N", core.Pricing{Reward: 1})
	})
	act("deleted with the uploader", func(tid core.TextureID) error {
		conn := postgrestest.Conn(t, address)
		if _, err := conn.Exec(t.Context(), "UPDATE textures SET public = false WHERE tid = $1", tid); err != nil {
			return err
		}
		return db.DeleteUserBy(t.Context(), admin, uploader.ID)
	})
}
