package postgres_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// DeleteTextureBy also settles the reports about the texture, in one action.
func TestAdminDeletesTexture(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	target := r.texture(t, "target", true)
	report := r.report(t, r.bob, target)
	f := func(tid core.TextureID, want fault.Kind) {
		t.Helper()
		wantKind(t, r.DeleteTexture(t.Context(), r.by, tid, false), want)
	}
	r.permit(t, r.ann, core.SuperAdministrator)
	f(target.ID, fault.Forbidden)
	r.permit(t, r.ann, core.Normal)
	f(target.ID+100, fault.NotFound)
	wantKeys := watchChanges(t, r.store)
	do(t, r.DeleteTexture(t.Context(), r.by, target.ID, false))
	wantKeys("the deletion", textureKeys(target)...)
	f(target.ID, fault.NotFound)
	testenv.Equal(t, r.list(t, "")[0].State, core.ReportDeleted, "the report")
	testenv.Equal(t, len(unread(t, r.store, r.bob.ID)), 1, "notifications of the reporter")
	r.wantAuditEntries(t, fmt.Sprintf(`texture.delete texture:%d {"name": "target", "reports": [%d], "uploader": %d}`, target.ID, report, r.ann.ID))

	// A texture without an uploader, and the administrator's own.
	orphan := addTexture(t, r.store, texture(r.cid.ID, skin.Classic, "orphan", true))
	do(t, r.DeleteUser(t.Context(), as(r.cid.ID), credentialsOf(r.cid)))
	own := addTexture(t, r.store, texture(r.boss.ID, skin.Classic, "own", true))
	for _, tid := range []core.TextureID{orphan.ID, own.ID} {
		testenv.Is(t, r.DeleteTexture(t.Context(), r.by, tid, false), nil, "the deletion of %d", tid)
	}
	testenv.Equal(t, len(r.auditEntries(t)), 3, "actions are logged")
}

func TestAdminChangesTexture(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "x", true)
	addToCloset(t, r.store, r.bob, tid.ID)
	r.permit(t, r.ann, core.Administrator)
	_, err := r.ChangeTexture(t.Context(), r.by, tid.ID, core.TextureChange{Name: new("N")}, core.ScorePrices{})
	wantKind(t, err, fault.Forbidden)
	r.permit(t, r.ann, core.Normal)
	_, err = r.ChangeTexture(t.Context(), r.by, tid.ID+100, core.TextureChange{Name: new("N")}, core.ScorePrices{})
	wantKind(t, err, fault.NotFound)
	twin := r.texture(t, "x2", true)
	r.exec(t, "UPDATE textures SET type = 'alex', pixels = (SELECT pixels FROM textures WHERE tid = $1) WHERE tid = $2", tid.ID, twin.ID)
	_, err = r.ChangeTexture(t.Context(), r.by, tid.ID, core.TextureChange{Type: new(skin.Slim)}, core.ScorePrices{})
	wantDuplicateOf(t, err, twin.ID)
	r.wantAuditEntries(t)

	wantKeys := watchChanges(t, r.store)
	got := must(r.ChangeTexture(t.Context(), r.by, tid.ID, core.TextureChange{Name: new("N"), Public: new(false)}, core.ScorePrices{}))(t)
	testenv.Check(t, got.Name == "N" && !got.Public && got.Likes == 1,
		"changed, it is %+v; want it named N, and only in its uploader's closet", got)
	wantKeys("a texture without a player", textureKeys(tid)...)
	r.wantAuditEntries(t, fmt.Sprintf(`texture.change texture:%d {"to": {"name": "N", "type": "steve", "public": false}, `+
		`"from": {"name": "x", "type": "steve", "public": true}, "name": "x", "uploader": %d}`, tid.ID, r.ann.ID))
}

// An action locks all its users in the order of uid, the administrator included: while it waits
// for one, it has no lock on later ones.
func TestTextureActionsLockUsersInOrder(t *testing.T) {
	t.Parallel()
	db := open(t)
	itemOwner, actor, uploader := addUser(t, db, "keeper"), addUser(t, db, "actor"), addUser(t, db, "uploader")
	do(t, db.ForcePermission(t.Context(), actor.ID, core.Administrator))
	admin := core.Actor{ID: actor.ID, Permission: core.Administrator, From: netip.MustParseAddr("192.0.2.1")}
	act := func(word string, begin func(core.TextureID) error) {
		t.Helper()
		tid := must(db.AddTexture(t.Context(), texture(uploader.ID, skin.Classic, word, true), core.Pricing{}, putOK))(t).ID
		do(t, db.AddClosetItem(t.Context(), as(itemOwner.ID), itemOwner.ID, tid, "N", core.Pricing{Refund: true}))
		db.exec(t, "UPDATE closet_items SET refund = 1 WHERE uid = $1 AND tid = $2", itemOwner.ID, tid)
		h := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", itemOwner.ID)
		testenv.Is(t, h.delays(t, func() error { return begin(tid) }, func() {
			h.exec(t, "SELECT FROM users WHERE uid IN ($1, $2) FOR UPDATE NOWAIT", actor.ID, uploader.ID)
		}), nil, "%s", word)
	}
	act("deleted", func(tid core.TextureID) error { return db.DeleteTexture(t.Context(), admin, tid, false) })
	act("hidden", func(tid core.TextureID) error {
		return errOf(db.ChangeTexture(t.Context(), admin, tid, core.TextureChange{Public: new(false)}, core.ScorePrices{}))
	})
	act("reported", func(tid core.TextureID) error {
		if err := db.AddReport(t.Context(), actor.ID, tid, "R"); err != nil {
			return err
		}
		reports, err := db.Reports(t.Context(), core.ReportQuery{State: core.ReportOpen, Page: 1, PerPage: 1})
		if err == nil {
			_, err = db.SettleReport(t.Context(), admin, reports.Reports[0].ID, core.Settlement{State: core.ReportDeleted})
		}
		return err
	})
	ownTexture := must(db.AddTexture(t.Context(), texture(itemOwner.ID, skin.Classic, "keeper's", true), core.Pricing{}, putOK))(t).ID
	act("liked", func(core.TextureID) error {
		return db.AddClosetItem(t.Context(), admin, actor.ID, ownTexture, "N", core.Pricing{Reward: 1})
	})
	act("deleted with the uploader", func(tid core.TextureID) error {
		conn := postgrestest.Conn(t, db.address)
		if _, err := conn.Exec(t.Context(), "UPDATE textures SET public = false WHERE tid = $1", tid); err != nil {
			return err
		}
		return db.DeleteUser(t.Context(), admin, byID(uploader.ID))
	})
}
