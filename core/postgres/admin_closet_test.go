package postgres_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

// An administrator changes closets under the quotas and prices of their users.
func TestAdminChangesCloset(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	public, private := r.texture(t, "public", true), r.texture(t, "private", false)
	add := func(user core.UserID, tid core.TextureID, pricing core.Pricing) error {
		return r.db.AddClosetItemBy(t.Context(), r.by, user, tid, "N", pricing)
	}
	remove := func(user core.UserID, tid core.TextureID) error {
		return r.db.RemoveClosetItemBy(t.Context(), r.by, user, tid)
	}
	wantKind(t, add(r.bob.ID+100, public.ID, core.Pricing{}), fault.NotFound)
	wantKind(t, add(r.bob.ID, public.ID+100, core.Pricing{}), fault.NotFound)
	wantKind(t, add(r.bob.ID, private.ID, core.Pricing{}), fault.Forbidden)
	wantKind(t, add(r.ann.ID, public.ID, core.Pricing{}), fault.Duplicate)
	wantKind(t, add(r.ann.ID, public.ID, core.Pricing{Quotas: core.Quotas{ClosetItems: 1}}), fault.Duplicate)
	addToCloset(t, r.db, r.cid, public.ID)
	other := r.texture(t, "other", true)
	wantKind(t, add(r.cid.ID, other.ID, core.Pricing{Quotas: core.Quotas{ClosetItems: 1}}), fault.Refused)
	wantKind(t, remove(r.bob.ID, public.ID), fault.NotFound)
	wantKind(t, remove(r.bob.ID+100, public.ID), fault.NotFound)
	r.permit(t, r.cid, core.Administrator)
	wantKind(t, add(r.cid.ID, other.ID, core.Pricing{}), fault.Forbidden)
	wantKind(t, remove(r.cid.ID, public.ID), fault.Forbidden)
	r.wantAuditEntries(t)

	if err := add(r.bob.ID, public.ID, core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	page := must(r.db.ClosetOf(t.Context(), r.bob.ID, core.ClosetQuery{Page: 1, PerPage: 10}))(t)
	if page.Total != 1 || page.Items[0].ID != public.ID || page.Items[0].ItemName != "N" || page.Items[0].Likes != 3 {
		t.Errorf("the closet is %+v", page)
	}
	if err := remove(r.bob.ID, public.ID); err != nil {
		t.Fatal(err)
	}
	page = must(r.db.ClosetOf(t.Context(), r.bob.ID, core.ClosetQuery{Page: 1, PerPage: 10}))(t)
	if page.Total != 0 || len(page.Items) != 0 {
		t.Errorf("the closet is %+v; want it empty", page)
	}
	_, err := r.db.ClosetOf(t.Context(), r.bob.ID+100, core.ClosetQuery{Page: 1, PerPage: 10})
	wantKind(t, err, fault.NotFound)
	// Administrators may change their own closet.
	if err := add(r.boss.ID, public.ID, core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	r.wantAuditEntries(t,
		fmt.Sprintf(`closet.add user:%d {"tid": %d, "name": "N", "email": "bob@example.com"}`, r.bob.ID, public.ID),
		fmt.Sprintf(`closet.remove user:%d {"tid": %d, "email": "bob@example.com"}`, r.bob.ID, public.ID),
		fmt.Sprintf(`closet.add user:%d {"tid": %d, "name": "N", "email": "boss@example.com"}`, r.boss.ID, public.ID),
	)
}

// Removing another user's private texture from a closet takes it off the players of the
// closet's user, which is a change for edges.
func TestAdminRemovalClearsPlayers(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	private := r.texture(t, "private", false)
	r.permit(t, r.bob, core.Administrator)
	addToCloset(t, r.db, r.bob, private.ID)
	wearer := addWearingPlayer(t, r.db, r.bob, "Wearer", private.ID)
	r.permit(t, r.bob, core.Normal)
	wantKeys := watchChanges(t, r.db)
	if err := r.db.RemoveClosetItemBy(t.Context(), r.by, r.bob.ID, private.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys("the removal", playerKeys(wearer)...)
	response := must(r.db.Mappings(t.Context(), []edgeproto.Key{edgeproto.NameKey("wearer")}))(t)
	if got := response.Mappings[0].Player.Skin; got != nil {
		t.Errorf("the mapping has the skin %+v", got)
	}
}
