package postgres_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// An administrator changes closets under the quotas and prices of their users.
func TestAdminChangesCloset(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	public, private := r.texture(t, "public", true), r.texture(t, "private", false)
	add := func(user core.UserID, tid core.TextureID, pricing core.Pricing) error {
		return r.AddClosetItem(t.Context(), r.by, user, tid, "N", pricing)
	}
	remove := func(user core.UserID, tid core.TextureID) error {
		return r.RemoveClosetItem(t.Context(), r.by, user, tid)
	}
	wantKind(t, add(r.bob.ID+100, public.ID, core.Pricing{}), fault.NotFound)
	wantKind(t, add(r.bob.ID, public.ID+100, core.Pricing{}), fault.NotFound)
	wantKind(t, add(r.bob.ID, private.ID, core.Pricing{}), fault.Forbidden)
	wantKind(t, add(r.ann.ID, public.ID, core.Pricing{}), fault.Duplicate)
	wantKind(t, add(r.ann.ID, public.ID, core.Pricing{Quotas: core.Quotas{ClosetItems: 1}}), fault.Duplicate)
	addToCloset(t, r.store, r.cid, public.ID)
	other := r.texture(t, "other", true)
	wantKind(t, add(r.cid.ID, other.ID, core.Pricing{Quotas: core.Quotas{ClosetItems: 1}}), fault.Refused)
	wantKind(t, remove(r.bob.ID, public.ID), fault.NotFound)
	wantKind(t, remove(r.bob.ID+100, public.ID), fault.NotFound)
	r.permit(t, r.cid, core.Administrator)
	wantKind(t, add(r.cid.ID, other.ID, core.Pricing{}), fault.Forbidden)
	wantKind(t, remove(r.cid.ID, public.ID), fault.Forbidden)
	r.wantAuditEntries(t)

	do(t, add(r.bob.ID, public.ID, core.Pricing{}))
	page := must(r.ClosetOf(t.Context(), r.bob.ID, core.ClosetQuery{Page: 1, PerPage: 10}))(t)
	testenv.Check(t, page.Total == 1 && page.Items[0].ID == public.ID && page.Items[0].ItemName == "N" &&
		page.Items[0].Likes == 3, "the closet is %+v", page)
	do(t, remove(r.bob.ID, public.ID))
	page = must(r.ClosetOf(t.Context(), r.bob.ID, core.ClosetQuery{Page: 1, PerPage: 10}))(t)
	testenv.Equal(t, page.Total+len(page.Items), 0, "items and their number in the empty closet")
	wantKind(t, errOf(r.ClosetOf(t.Context(), r.bob.ID+100, core.ClosetQuery{Page: 1, PerPage: 10})), fault.NotFound)
	// Administrators may change their own closet.
	do(t, add(r.boss.ID, public.ID, core.Pricing{}))
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
	addToCloset(t, r.store, r.bob, private.ID)
	wearer := addWearingPlayer(t, r.store, r.bob, "Wearer", private.ID)
	r.permit(t, r.bob, core.Normal)
	wantKeys := watchChanges(t, r.store)
	do(t, r.RemoveClosetItem(t.Context(), r.by, r.bob.ID, private.ID))
	wantKeys("the removal", playerKeys(wearer)...)
	testenv.Equal(t, mapping(t, r.store, edgeproto.NameKey("wearer")).Player.Skin, nil, "the skin of the player")
}
