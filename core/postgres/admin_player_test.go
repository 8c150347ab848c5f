package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Actions of administrators on players write the same changes as those of owners.
func TestPlayerActionsNameTheirKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	root := addAdministrator(t, db, "root", core.SuperAdministrator)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false))
	calls := db.changed.Load()
	wantKeys := watchChanges(t, db)
	renamed := steve
	renamed.Name = "Alex"

	must(db.RenamePlayer(t.Context(), root, steve.ID, player("Alex")))(t)
	wantKeys("a rename", append(playerKeys(renamed), edgeproto.NameKey("Steve"))...)
	must(db.RenamePlayer(t.Context(), root, steve.ID, player("Alex")))(t)
	wantKeys("a rename to the same name")
	wantKind(t, errOf(db.SetPlayerTextures(t.Context(), root, steve.ID, core.TextureSelection{Skin: &bobs.ID})), fault.Forbidden)
	wantKeys("an outfit that is refused")
	must(db.SetPlayerTextures(t.Context(), root, steve.ID, core.TextureSelection{Skin: &public.ID, Cape: &cape.ID}))(t)
	wantKeys("an outfit", playerKeys(renamed)...)

	moved := must(db.MovePlayer(t.Context(), root, steve.ID, bob.ID, core.Quotas{}))(t)
	wantKeys("a moved player that loses a texture", playerKeys(renamed)...)
	testenv.Check(t, moved.Owner == bob.ID && moved.Skin == public.ID && moved.Cape == 0 && moved.UUID == steve.UUID,
		"the moved player is %+v; want it bob's, with the public skin and no cape", moved)
	back := must(db.MovePlayer(t.Context(), root, steve.ID, ann.ID, core.Quotas{}))(t)
	wantKeys("a moved player that keeps all textures")
	testenv.Equal(t, back.LastModified, moved.LastModified, "last_modified after a new owner alone")

	must(db.ClearPlayerTextures(t.Context(), root, steve.ID, true, true))(t)
	wantKeys("no outfit", playerKeys(renamed)...)
	do(t, db.DeletePlayer(t.Context(), root, steve.ID))
	wantKeys("a deletion", playerKeys(renamed)...)
	testenv.Equal(t, db.changed.Load()-calls, 7, "calls of onChange, one for each action")
}

// A moved player keeps the textures that the new owner may use: their own, and those in their
// closet.
func TestMovedPlayerKeepsAllowedTextures(t *testing.T) {
	t.Parallel()
	db := open(t)
	root := addAdministrator(t, db, "root", core.SuperAdministrator)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	gift := addTexture(t, db, texture(ann.ID, skin.Classic, "gift", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Cape, "bobs", false))
	for uid, tid := range map[core.UserID]core.TextureID{bob.ID: gift.ID, ann.ID: bobs.ID} {
		db.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, $3, 'gift')", uid, tid, tid == bobs.ID)
	}
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &gift.ID, Cape: &bobs.ID}))(t)
	got := must(db.MovePlayer(t.Context(), root, steve.ID, bob.ID, core.Quotas{}))(t)
	testenv.Equal(t, outfitOf(got), outfit{gift.ID, bobs.ID}, "what the player wears")
}

// An action on a player that changes while the action waits for the lock is retried with the
// new state.
func TestPlayerActionsAreRetried(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, meanwhile string
		want            fault.Kind
		entry           string
	}{
		{"renamed", "UPDATE players SET name = 'Between', name_key = 'between'", 0, `{"to": "Last", "uid": 1, "from": "Between", "name": "Between"}`},
		{"moved", "UPDATE players SET uid = 2", 0, `{"to": "Last", "uid": 2, "from": "Steve", "name": "Steve"}`},
		{"moved to a peer", "UPDATE players SET uid = 3", fault.Forbidden, ""},
		{"deleted", "DELETE FROM players", fault.NotFound, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db, ann := openForOne(t)
			addUser(t, db, "bob")
			addAdministrator(t, db, "peer", core.Administrator)
			admin := addAdministrator(t, db, "admin", core.Administrator)
			steve := addPlayer(t, db, ann.ID, "Steve")
			other := db.lock(t, test.meanwhile)

			err := other.delays(t, func() error { return errOf(db.RenamePlayer(t.Context(), admin, steve.ID, player("Last"))) })
			var want []string
			if test.entry == "" {
				wantKind(t, err, test.want)
			} else {
				do(t, err)
				want = []string{"player.rename player:1 " + test.entry}
			}
			cmptest.Same(t, summaries(auditLog(t, db)), want, "the log")
		})
	}
}

// Owners and administrators act at the same time: no user exceeds a quota, and no player wears
// what its owner may not use. An action may only fail if its player changes all the time.
func TestOwnersAndAdministratorsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db := open(t)
	const most = 3
	quotas := core.Quotas{Players: most}
	admins := []core.Actor{addAdministrator(t, db, "root", core.SuperAdministrator), addAdministrator(t, db, "admin", core.Administrator)}
	var owners []core.UserID
	var tids []core.TextureID
	var pids []core.PlayerID
	for i := range 4 {
		owner := addUser(t, db, fmt.Sprintf("user%d", i)).ID
		owners = append(owners, owner)
		for j := range 2 {
			word := fmt.Sprintf("texture%d%d", i, j)
			tids = append(tids, addTexture(t, db, texture(owner, skin.Classic, word, j == 0)).ID)
			pids = append(pids, addPlayer(t, db, owner, word).ID)
		}
	}

	ctx := t.Context()
	actions := []func(owner core.UserID, admin core.Actor, pid core.PlayerID, tid core.TextureID) error{
		func(owner core.UserID, admin core.Actor, pid core.PlayerID, _ core.TextureID) error {
			return errOf(db.MovePlayer(ctx, admin, pid, owner, quotas))
		},
		func(_ core.UserID, admin core.Actor, pid core.PlayerID, tid core.TextureID) error {
			return errOf(db.SetPlayerTextures(ctx, admin, pid, core.TextureSelection{Skin: &tid}))
		},
		func(owner core.UserID, _ core.Actor, pid core.PlayerID, tid core.TextureID) error {
			return errOf(db.SetPlayerTextures(ctx, as(owner), pid, core.TextureSelection{Skin: &tid}))
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, tid core.TextureID) error {
			return db.AddClosetItem(ctx, as(owner), owner, tid, "gift", core.Pricing{})
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, tid core.TextureID) error {
			return db.RemoveClosetItem(ctx, as(owner), owner, tid)
		},
		func(owner core.UserID, admin core.Actor, _ core.PlayerID, _ core.TextureID) error {
			return errOf(db.SetPermission(ctx, admin, owner, core.Permission(-rand.IntN(2)), core.Ban{}))
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, _ core.TextureID) error {
			return errOf(db.CreatePlayer(ctx, owner, player(fmt.Sprintf("p%d", rand.Uint64())), core.Pricing{Quotas: quotas}))
		},
	}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for range 60 {
				action := actions[rand.IntN(len(actions))]
				err := action(owners[rand.IntN(len(owners))], admins[rand.IntN(len(admins))], pids[rand.IntN(len(pids))], tids[rand.IntN(len(tids))])
				if kind := fault.KindOf(err); err != nil && (kind == fault.Internal || kind == fault.Unavailable && !strings.Contains(err.Error(), "Somebody else")) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()

	for _, sql := range []string{
		"SELECT count(*) too_many FROM (SELECT uid FROM players GROUP BY uid HAVING count(*) > " + fmt.Sprint(most) + ") u",
		`SELECT count(*) AS players_that_wear_what_their_owner_may_not_use
			FROM players p JOIN textures t ON t.tid IN (p.tid_skin, p.tid_cape)
			WHERE NOT t.public AND t.uploader <> p.uid AND NOT EXISTS (SELECT FROM closet_items c WHERE c.uid = p.uid AND c.tid = t.tid)`,
	} {
		db.hasCount(t, 0, sql)
	}
}
