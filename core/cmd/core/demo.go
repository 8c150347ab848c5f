package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// The demo user's log-in.
const (
	demoEmail    = "demo@example.com"
	demoPassword = "demo-password"
)

// withoutLimits lifts what could keep the demo data out: they cost nothing, and their
// names and sizes are always allowed.
func (c settings) withoutLimits() settings {
	c.Quotas, c.Scores = core.Quotas{}, core.Scores{}
	c.Players = core.PlayerLimits{NamePattern: ".*", NameMin: 1, NameMax: 16}
	c.Textures.Limits = skin.DefaultLimits()
	return c
}

// addDemo puts the demo data in, if that is wanted. The database must be there for it.
func addDemo(ctx context.Context, c settings, db *postgres.DB, files *blobstore.Store, passwords *core.Passwords, logins *core.Logins, log *slog.Logger) error {
	if !c.Demo {
		return nil
	}
	if err := db.Check(ctx); err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	parts, err := newServices(c.withoutLimits(), db, files, passwords, logins)
	if err != nil {
		return err
	}
	if err := addDemoData(ctx, parts, core.NewMappings(db), log); err != nil {
		return fmt.Errorf("put the demo data in: %w", err)
	}
	return nil
}

// addDemoData puts a user with players, textures and notifications in. It does what is
// still to be done, so that a start that was cut short is made good by the next
// one; its last step tells that all is there.
func addDemoData(ctx context.Context, parts api.Services, mappings *core.Mappings, log *slog.Logger) error {
	caller, err := demoUser(ctx, parts)
	if err != nil {
		return err
	}
	if complete, err := parts.Notifications.HasAny(ctx, caller.ID); err != nil || complete {
		return err
	}

	first := map[skin.Type]core.TextureID{}
	for _, painting := range slices.Concat(paint.Skins(), paint.Capes()) {
		tid, err := demoTexture(ctx, parts.Textures, caller.ID, painting)
		if err != nil {
			return err
		}
		if first[painting.Type] == 0 {
			first[painting.Type] = tid
		}
	}
	steve, alex, cape := first[skin.Classic], first[skin.Slim], first[skin.Cape]
	for _, p := range []struct {
		name  string
		slots core.TextureSlots
	}{
		{"Demo", core.TextureSlots{Skin: &steve, Cape: &cape}},
		{"Slim", core.TextureSlots{Skin: &alex}},
	} {
		err := demoPlayer(ctx, parts.Players, mappings, caller, p.name, p.slots)
		if fault.KindOf(err) == fault.Forbidden {
			log.WarnContext(ctx, "somebody else has the demo player's name", "name", p.name)
		} else if err != nil {
			return err
		}
	}
	// Last, since they tell the next start that all is there.
	if _, err := parts.Notifications.Send(ctx, []core.UserID{caller.ID}, "Your first upload",
		"Any PNG of 64×64 pixels will do. See the *walk-through* in the README."); err != nil {
		return err
	}
	if _, err := parts.Notifications.Send(ctx, []core.UserID{caller.ID}, "Welcome to Veneer",
		"This is a **demo account**. Its skins and capes were drawn by Veneer itself; look into the closet."); err != nil {
		return err
	}
	log.InfoContext(ctx, "demo data is in", "email", demoEmail)
	return nil
}

// demoUser returns the demo user, adding it if need be.
func demoUser(ctx context.Context, parts api.Services) (core.Caller, error) {
	registration := core.Registration{Email: demoEmail, Password: demoPassword, Nickname: "Demo", Verified: true}
	added, err := parts.Users.Register(ctx, registration)
	if fault.KindOf(err) == fault.Duplicate {
		added.User, err = parts.Users.ByEmail(ctx, demoEmail)
	}
	return core.Caller{User: added.User}, err
}

// demoTexture returns the texture of a painting, uploading it if need be.
func demoTexture(ctx context.Context, textures *core.Textures, user core.UserID, painting paint.NamedSheet) (core.TextureID, error) {
	file, err := painting.Sheet.PNG()
	if err != nil {
		return 0, fmt.Errorf("demo texture %s: %w", painting.Name, err)
	}
	texture, err := textures.Upload(ctx, user, core.Upload{File: file, Name: painting.Name, Type: painting.Type.String(), Public: true})
	if existing, ok := fault.Of(err).Data.(map[string]core.TextureID); err != nil && ok {
		return existing["tid"], nil
	}
	return texture.ID, err
}

// demoPlayer dresses a player, adding it if need be. It returns a Forbidden fault
// when somebody else has its name.
func demoPlayer(ctx context.Context, store *core.Players, mappings *core.Mappings, caller core.Caller, name string, slots core.TextureSlots) error {
	player, err := store.Create(ctx, caller, name)
	if fault.KindOf(err) == fault.Duplicate {
		player.ID, err = playerNamed(ctx, mappings, name)
	}
	if err != nil {
		return err
	}
	_, err = store.SetTextures(ctx, caller, player.ID, slots)
	return err
}

func playerNamed(ctx context.Context, mappings *core.Mappings, name string) (core.PlayerID, error) {
	answer, err := mappings.Resolve(ctx, edgeproto.LookupRequest{Keys: []edgeproto.Key{edgeproto.NameKey(name)}})
	if err != nil {
		return 0, err
	}
	if answer.Mappings[0].Player == nil {
		return 0, fault.New(fault.NotFound, "The player %s was there a moment ago.", name)
	}
	return core.PlayerID(answer.Mappings[0].Player.PID), nil
}
