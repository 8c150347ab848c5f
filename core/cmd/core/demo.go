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
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// Credentials of the demo user.
const (
	demoEmail    = "demo@example.com"
	demoPassword = "demo-password"
)

// withoutLimits returns settings that allow the demo data: without quotas, scores and terms, and with
// permissive names and sizes.
func (s settings) withoutLimits() settings {
	s.Quotas, s.Scores = core.Quotas{}, core.ScorePrices{}
	s.Players = core.PlayerLimits{NamePattern: ".*", NameMin: 1, NameMax: 16}
	s.Textures.Limits = skin.DefaultLimits()
	s.Site.PagesDir = "" // the demo user accepts no terms
	return s
}

// addDemo adds the demo data if CORE_DEMO is set. The database must be available.
func addDemo(ctx context.Context, cfg settings, db *postgres.DB, files *blobstore.Store, passwords *core.Passwords, logins *core.Logins, log *slog.Logger) error {
	if !cfg.Demo {
		return nil
	}
	if err := db.Check(ctx); err != nil {
		return config.In(prefix, err)
	}
	services, err := newServices(cfg.withoutLimits(), db, files, passwords, logins, log)
	if err != nil {
		return err
	}
	if err := addDemoData(ctx, services, core.NewMappings(db), log); err != nil {
		return fmt.Errorf("add the demo data: %w", err)
	}
	return nil
}

// addDemoData adds a user with players, textures and notifications. It is idempotent, so that
// the next start completes an interrupted one; the notifications are added last and mark the
// data as complete.
func addDemoData(ctx context.Context, services api.Services, mappings *core.Mappings, log *slog.Logger) error {
	caller, err := demoUser(ctx, services)
	if err != nil {
		return err
	}
	if complete, err := services.Notifications.HasAny(ctx, caller.ID); err != nil || complete {
		return err
	}

	first := map[skin.Type]core.TextureID{}
	for _, painting := range slices.Concat(artwork.Skins(), artwork.Capes()) {
		tid, err := demoTexture(ctx, services.Textures, caller.ID, painting)
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
		slots core.TextureSelection
	}{
		{"Demo", core.TextureSelection{Skin: &steve, Cape: &cape}},
		{"Slim", core.TextureSelection{Skin: &alex}},
	} {
		err := demoPlayer(ctx, services.Players, mappings, caller, p.name, p.slots)
		if fault.KindOf(err) == fault.Forbidden {
			log.WarnContext(ctx, "the demo player's name is taken", "name", p.name)
		} else if err != nil {
			return err
		}
	}
	// Last, since they mark the data as complete.
	if _, err := services.Notifications.Send(ctx, []core.UserID{caller.ID}, core.Message{
		Title: "Your first upload", Content: "Any PNG of 64×64 pixels will do. See the *walk-through* in the README.", Kind: "demo_upload",
	}); err != nil {
		return err
	}
	if _, err := services.Notifications.Send(ctx, []core.UserID{caller.ID}, core.Message{
		Title: "Welcome", Content: "This is a **demo account**. Its skins and capes are in the closet.", Kind: "demo_welcome",
	}); err != nil {
		return err
	}
	log.InfoContext(ctx, "demo data added", "email", demoEmail)
	return nil
}

// demoUser returns the demo user, which it adds if necessary.
func demoUser(ctx context.Context, services api.Services) (core.Caller, error) {
	registration := core.Registration{Email: demoEmail, Password: demoPassword, Nickname: "Demo", Verified: true}
	added, err := services.Users.Register(ctx, registration)
	if fault.KindOf(err) == fault.Duplicate {
		added.User, err = services.Users.ByEmail(ctx, demoEmail)
	}
	return core.Caller{User: added.User}, err
}

// demoTexture returns the texture of a painting, which it uploads if necessary.
func demoTexture(ctx context.Context, textures *core.Textures, user core.UserID, painting artwork.NamedSheet) (core.TextureID, error) {
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

// demoPlayer sets the textures of a player, which it adds if necessary. It returns a Forbidden
// fault if another user has the name.
func demoPlayer(ctx context.Context, store *core.Players, mappings *core.Mappings, caller core.Caller, name string, slots core.TextureSelection) error {
	player, err := store.Create(ctx, caller, name)
	if fault.KindOf(err) == fault.Duplicate {
		player.ID, err = playerNamed(ctx, mappings, name)
	}
	if err != nil {
		return err
	}
	_, err = store.SetTextures(ctx, caller.Owner(), player.ID, slots)
	return err
}

func playerNamed(ctx context.Context, mappings *core.Mappings, name string) (core.PlayerID, error) {
	response, err := mappings.Resolve(ctx, edgeproto.LookupRequest{Keys: []edgeproto.Key{edgeproto.NameKey(name)}})
	if err != nil {
		return 0, err
	}
	if response.Mappings[0].Player == nil {
		return 0, fault.New(fault.NotFound, "The player %s was there a moment ago.", name)
	}
	return core.PlayerID(response.Mappings[0].Player.PID), nil
}
