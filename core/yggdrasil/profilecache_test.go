package yggdrasil_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// follow runs the feed, without which profiles come from the database.
func (c client) follow(t *testing.T) client {
	t.Helper()
	coretest.Background(t, c.feed.Run)
	coretest.Background(t, func(ctx context.Context) {
		c.Domain.DB.Listen(ctx, slog.New(slog.DiscardHandler), c.feed.Notify)
	})
	return c
}

// look describes a profile: the name, the skin's file, and the model; empty if there is none.
func (c client) look(t *testing.T, player uuid.UUID) string {
	t.Helper()
	got := c.Get(t, "/sessionserver/session/minecraft/profile/"+hexID(player))
	if got.Status == 204 {
		return ""
	}
	profile := decode[signedProfile](t, got)
	worn := profile.payload(t).Textures["SKIN"]
	return strings.TrimSpace(profile.Name + " " + strings.TrimPrefix(worn.URL, texturesURL+"/textures/") + " " + worn.Metadata["model"])
}

// shows checks that a core shows a profile in every response to a request that is sent later than a
// second after the change, and returns how long it took.
func (c client) shows(t *testing.T, what string, player uuid.UUID, want string) time.Duration {
	t.Helper()
	for changed := time.Now(); ; {
		sent := time.Now()
		got := c.look(t, player)
		if got == want {
			return time.Since(changed)
		}
		if sent.Sub(changed) > edgeproto.TrustWindow {
			t.Errorf("%s: %s after the change the profile is %q; want %q", what, sent.Sub(changed), got, want)
			return 0
		}
	}
}

// hits returns how many profiles have come from memory.
func hits(t *testing.T) (n float64) {
	t.Helper()
	families := testenv.Must(prometheus.DefaultGatherer.Gather())(t)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == "veneer_core_profiles_total" && labels["by"] == "uuid" && labels["result"] == "hit" {
				n += metric.GetCounter().GetValue()
			}
		}
	}
	return n
}

// A launcher that puts a texture sees it in the next profile of the same core, and in those of
// another core within the time that all changes take.
func TestUploadsShowInProfiles(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_UPLOADS=0", "LIMIT_CHANGES=0").follow(t)
	other := serve(t, c.site).follow(t)
	u := c.signUp(t, "Ann_1")
	player := u.players[0]
	as := c.as(c.issue(t, u).AccessToken)
	files := [][]byte{skinFile(t, 1), skinFile(t, 2)}
	before := hits(t)
	uploads := 100
	if testing.Short() {
		uploads = 50
	}
	var waits []time.Duration
	var looks [2]string
	for i := range uploads {
		as.upload(t, player, "skin", "", files[i%2]).HasStatus(t, 204)
		shown := c.look(t, player.UUID)
		if i < 2 {
			looks[i] = shown
		}
		if shown != looks[i%2] || looks[0] == looks[1] {
			t.Fatalf("after upload %d the profile is %q; want %q", i, shown, looks[i%2])
		}
		waits = append(waits, other.shows(t, fmt.Sprint("upload ", i), player.UUID, shown))
	}
	slices.Sort(waits)
	t.Logf("the other core shows an upload after %s (median), %s (p99)", waits[len(waits)/2], waits[len(waits)*99/100])
	testenv.Check(t, hits(t) != before, "no profile came from memory")
}

// Whatever changes a profile, cores with the profile in memory show the change.
func TestChangesShowInCachedProfiles(t *testing.T) {
	t.Parallel()
	c := start(t).follow(t)
	other := serve(t, c.site).follow(t)
	ann, bob := c.signUp(t, "Ann_1"), c.signUp(t, "Bob_1")
	caller, by := core.Caller{User: ann.User}, core.CLIActor
	player := ann.players[0]
	own, _ := c.dress(t, bob.players[0], skinFile(t, 1), nil, "steve")
	texture := func(hash skin.Hash) (tid core.TextureID) {
		t.Helper()
		testenv.Do(t, c.site.SQL.QueryRow(t.Context(), "SELECT tid FROM textures WHERE hash = $1", hash[:]).Scan(&tid))
		return tid
	}
	shared := texture(own)
	wear := func() error {
		return testenv.ErrOf(c.Domain.Players.SetTextures(t.Context(), by, player.ID, core.TextureSelection{Skin: &shared}))
	}
	alter := func(change core.TextureChange) error {
		return testenv.ErrOf(c.Domain.Textures.Change(t.Context(), by, shared, change))
	}
	f := func(what, want string, change func() error) {
		t.Helper()
		testenv.Do(t, change())
		testenv.Equal(t, c.look(t, player.UUID), want, "%s: the core that made the change shows", what)
		other.shows(t, what, player.UUID, want)
		c.shows(t, what, player.UUID, want) // from memory
		if want != "" {
			c.profile(t, player).verify(t)
		}
	}
	f("textures set", "Ann_1 "+own.String(), wear)
	f("another model", "Ann_1 "+own.String()+" slim", func() error {
		return alter(core.TextureChange{Type: new(skin.Slim)})
	})
	f("a rename", "Ann_2 "+own.String()+" slim", func() error {
		return testenv.ErrOf(c.Domain.Players.Rename(t.Context(), caller.Owner(), player.ID, "Ann_2"))
	})
	f("the texture hidden by its owner", "Ann_2", func() error { return alter(core.TextureChange{Public: new(false)}) })
	f("public and worn again", "Ann_2 "+own.String()+" slim", func() error {
		return errors.Join(alter(core.TextureChange{Public: new(true)}), wear())
	})
	f("another owner of the player", "Ann_2 "+own.String()+" slim", func() error {
		return testenv.ErrOf(c.Domain.Players.Move(t.Context(), by, player.ID, bob.ID))
	})
	f("the texture deleted", "Ann_2", func() error { return c.Domain.Textures.Delete(t.Context(), by, shared) })
	f("the player deleted", "", func() error { return c.Domain.Players.Delete(t.Context(), by, player.ID) })
	var again core.Player
	f("a player of the same name created", "", func() (err error) {
		again, err = c.Domain.Players.Create(t.Context(), core.Caller{User: bob.User}, "Ann_2") // whose name it stays for a day
		return err
	})
	player = again
	f("then", "Ann_2", func() error { return nil })
	f("the user deleted", "", func() error { return c.Domain.Accounts.DeleteUser(t.Context(), by, bob.ID) })
}

// A database that was restored in place shows former profiles, of which no change tells.
func TestRestoreShowsInCachedProfiles(t *testing.T) {
	t.Parallel()
	c := start(t).follow(t)
	player := c.signUp(t, "Ann_1").players[0]
	for _, name := range []string{"Ann_2", "Ann_3"} {
		testenv.Must(c.Domain.Players.Rename(t.Context(), core.CLIActor, player.ID, name))(t)
		c.shows(t, "a rename", player.UUID, name)
	}
	// Both in one transaction, as a restore does.
	c.site.Exec(t, `
		WITH former AS (UPDATE players SET name = 'Ann_1', name_key = 'ann_1')
		UPDATE feed SET revision = revision - 1`)
	c.shows(t, "a restore to an earlier revision", player.UUID, "Ann_1")
	c.shows(t, "the same from memory", player.UUID, "Ann_1")

	c.site.Exec(t, `
		WITH former AS (UPDATE players SET name = 'Ann_0', name_key = 'ann_0')
		UPDATE feed SET history = 'another server'`)
	c.shows(t, "a promotion", player.UUID, "Ann_0")
}
