package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Actions of administrators on players write the same changes as those of owners.
func TestPlayerActionsNameTheirKeys(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	root := addAdministrator(t, db, "root", core.SuperAdministrator)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false))
	calls := 0
	db.OnChange(func() { calls++ })
	wantKeys := watchChanges(t, db)
	renamed := steve
	renamed.Name = "Alex"

	must(db.RenamePlayerBy(t.Context(), root, steve.ID, player("Alex")))(t)
	wantKeys("a rename", append(playerKeys(renamed), edgeproto.NameKey("Steve"))...)
	must(db.RenamePlayerBy(t.Context(), root, steve.ID, player("Alex")))(t)
	wantKeys("a rename to the same name")
	_, err := db.SetPlayerTexturesBy(t.Context(), root, steve.ID, core.TextureSelection{Skin: &bobs.ID})
	wantKind(t, err, fault.Forbidden)
	wantKeys("an outfit that is refused")
	must(db.SetPlayerTexturesBy(t.Context(), root, steve.ID, core.TextureSelection{Skin: &public.ID, Cape: &cape.ID}))(t)
	wantKeys("an outfit", playerKeys(renamed)...)

	moved := must(db.MovePlayerBy(t.Context(), root, steve.ID, bob.ID, core.Quotas{}))(t)
	wantKeys("a moved player that loses a texture", playerKeys(renamed)...)
	if moved.Owner != bob.ID || moved.Skin != public.ID || moved.Cape != 0 || moved.UUID != steve.UUID {
		t.Errorf("the moved player is %+v; want it bob's, with the public skin and no cape", moved)
	}
	back := must(db.MovePlayerBy(t.Context(), root, steve.ID, ann.ID, core.Quotas{}))(t)
	wantKeys("a moved player that keeps all textures")
	if !back.LastModified.Equal(moved.LastModified) {
		t.Errorf("a new owner alone changes last_modified from %s to %s", moved.LastModified, back.LastModified)
	}

	must(db.ClearPlayerTexturesBy(t.Context(), root, steve.ID, true, true))(t)
	wantKeys("no outfit", playerKeys(renamed)...)
	if err := db.DeletePlayerBy(t.Context(), root, steve.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys("a deletion", playerKeys(renamed)...)
	if calls != 7 {
		t.Errorf("onChange was called %d times; want once for each of 7 actions", calls)
	}
}

// A moved player keeps the textures that the new owner may use: their own, and those in their
// closet.
func TestMovedPlayerKeepsAllowedTextures(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	root := addAdministrator(t, db, "root", core.SuperAdministrator)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	gift := addTexture(t, db, texture(ann.ID, skin.Classic, "gift", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Cape, "bobs", false))
	conn := postgrestest.Conn(t, address)
	for uid, tid := range map[core.UserID]core.TextureID{bob.ID: gift.ID, ann.ID: bobs.ID} {
		if _, err := conn.Exec(t.Context(), "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, $3, 'gift')", uid, tid, tid == bobs.ID); err != nil {
			t.Fatal(err)
		}
	}
	must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &gift.ID, Cape: &bobs.ID}))(t)
	if got := must(db.MovePlayerBy(t.Context(), root, steve.ID, bob.ID, core.Quotas{}))(t); got.Skin != gift.ID || got.Cape != bobs.ID {
		t.Errorf("the player wears %d and %d; want %d and %d", got.Skin, got.Cape, gift.ID, bobs.ID)
	}
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
			db, address := openNamed(t)
			ann := addUser(t, db, "ann")
			addUser(t, db, "bob")
			addAdministrator(t, db, "peer", core.Administrator)
			admin := addAdministrator(t, db, "admin", core.Administrator)
			steve := addPlayer(t, db, ann.ID, "Steve")
			other := beginLockTx(t, address)
			other.exec(t, test.meanwhile)

			renamed := make(chan error, 1)
			go func() {
				_, err := db.RenamePlayerBy(t.Context(), admin, steve.ID, player("Last"))
				renamed <- err
			}()
			other.commitOnceBlocked(t, 1)
			err := <-renamed
			var want []string
			if test.entry == "" {
				wantKind(t, err, test.want)
			} else if want = []string{"player.rename player:1 " + test.entry}; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, summaries(auditLog(t, db))); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
		})
	}
}

// Owners and administrators act at the same time: no user exceeds a quota, and no player wears
// what its owner may not use. An action may only fail if its player changes all the time.
func TestOwnersAndAdministratorsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
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
			_, err := db.MovePlayerBy(ctx, admin, pid, owner, quotas)
			return err
		},
		func(_ core.UserID, admin core.Actor, pid core.PlayerID, tid core.TextureID) error {
			_, err := db.SetPlayerTexturesBy(ctx, admin, pid, core.TextureSelection{Skin: &tid})
			return err
		},
		func(owner core.UserID, _ core.Actor, pid core.PlayerID, tid core.TextureID) error {
			_, err := db.SetPlayerTextures(ctx, owner, pid, core.TextureSelection{Skin: &tid})
			return err
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, tid core.TextureID) error {
			return db.AddClosetItem(ctx, owner, tid, "gift", core.Pricing{})
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, tid core.TextureID) error {
			return db.RemoveClosetItem(ctx, owner, tid)
		},
		func(owner core.UserID, admin core.Actor, _ core.PlayerID, _ core.TextureID) error {
			_, err := db.SetPermissionBy(ctx, admin, owner, core.Permission(-rand.IntN(2)))
			return err
		},
		func(owner core.UserID, _ core.Actor, _ core.PlayerID, _ core.TextureID) error {
			_, err := db.CreatePlayer(ctx, owner, player(fmt.Sprintf("p%d", rand.Uint64())), core.Pricing{Quotas: quotas})
			return err
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

	conn := postgrestest.Conn(t, address)
	for what, sql := range map[string]string{
		"users with too many players": fmt.Sprintf("SELECT count(*) FROM (SELECT uid FROM players GROUP BY uid HAVING count(*) > %d) u", most),
		"players that wear what their owner may not use": `
			SELECT count(*) FROM players p JOIN textures t ON t.tid IN (p.tid_skin, p.tid_cape)
			WHERE NOT t.public AND t.uploader <> p.uid AND NOT EXISTS (SELECT FROM closet_items c WHERE c.uid = p.uid AND c.tid = t.tid)`,
	} {
		var n int
		if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			t.Errorf("there are %d %s", n, what)
		}
	}
}
