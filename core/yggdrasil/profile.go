package yggdrasil

import (
	"context"
	"crypto/sha256"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// profileJSON is a player with properties.
type profileJSON struct {
	playerJSON
	Properties []core.Property `json:"properties"`
}

// writeProfile writes a profile, with signatures or without.
func (s *Server) writeProfile(ctx context.Context, rc *fasthttp.RequestCtx, profile core.Profile, signed bool) error {
	properties, err := s.properties(ctx, profile, signed)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, profileJSON{toPlayerJSON(profile.NamedPlayer), properties})
}

func (s *Server) properties(ctx context.Context, profile core.Profile, signed bool) ([]core.Property, error) {
	if signed {
		return s.Profiles.SignedProperties(ctx, profile)
	}
	return s.Profiles.Properties(profile)
}

// findProfile returns the profile of the player in the path; a NotFound fault if there is none.
func (s *Server) findProfile(ctx context.Context, rc *fasthttp.RequestCtx) (core.Profile, error) {
	id, _ := parseID(pathText(rc, "uuid")) // no player has the zero UUID
	return s.Profiles.Find(ctx, id)
}

// absentIsNoContent writes status 204 for a NotFound fault: in the game authlib-injector turns a 404
// into a 500.
func absentIsNoContent(rc *fasthttp.RequestCtx, err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return writeNoContent(rc)
	}
	return err
}

// handleProfile handles GET /sessionserver/session/minecraft/profile/{uuid}.
func (s *Server) handleProfile(ctx context.Context, rc *fasthttp.RequestCtx) error {
	profile, err := s.findProfile(ctx, rc)
	if err != nil {
		return absentIsNoContent(rc, err)
	}
	return s.writeProfile(ctx, rc, profile, wantsSignatures(rc))
}

// wantsSignatures reports whether the query asks for signatures.
func wantsSignatures(rc *fasthttp.RequestCtx) bool {
	return string(rc.QueryArgs().Peek("unsigned")) == "false"
}

// findPlayer returns the profile of the player whose name or UUID is in the path; a NotFound fault if there is none.
func (s *Server) findPlayer(ctx context.Context, rc *fasthttp.RequestCtx) (core.Profile, error) {
	text := pathText(rc, "player")
	if id, ok := parseID(text); ok {
		return s.Profiles.Find(ctx, id)
	}
	players, err := s.Profiles.Named(ctx, []string{text})
	if err == nil && len(players) == 0 {
		err = fault.New(fault.NotFound, "There is no such player.")
	}
	if err != nil {
		return core.Profile{}, err
	}
	return s.Profiles.Find(ctx, players[0].UUID)
}

// handlePlayerProfile handles GET /profile/{player}.
func (s *Server) handlePlayerProfile(ctx context.Context, rc *fasthttp.RequestCtx) error {
	profile, err := s.findPlayer(ctx, rc)
	if err != nil {
		return err
	}
	return s.writeProfile(ctx, rc, profile, wantsSignatures(rc))
}

// handlePlayerTextures handles GET /textures/{player}.
func (s *Server) handlePlayerTextures(ctx context.Context, rc *fasthttp.RequestCtx) error {
	profile, err := s.findPlayer(ctx, rc)
	if err != nil {
		return err
	}
	worn := s.Profiles.Worn(profile)
	if worn == (core.Worn{}) { // chrly has this status, too
		return writeNoContent(rc)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, worn)
}

// handlePlayerByUUID handles GET /minecraftservices/minecraft/profile/lookup/{uuid}.
func (s *Server) handlePlayerByUUID(ctx context.Context, rc *fasthttp.RequestCtx) error {
	profile, err := s.findProfile(ctx, rc)
	if err != nil {
		return absentIsNoContent(rc, err)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toPlayerJSON(profile.NamedPlayer))
}

// handlePlayerNamed handles GET /api/users/profiles/minecraft/{name}.
func (s *Server) handlePlayerNamed(ctx context.Context, rc *fasthttp.RequestCtx) error {
	players, err := s.Profiles.Named(ctx, []string{pathText(rc, "name")})
	switch {
	case err != nil:
		return err
	case len(players) == 0:
		return writeNoContent(rc)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toPlayerJSON(players[0]))
}

// handlePlayersNamed handles POST /api/profiles/minecraft.
func (s *Server) handlePlayersNamed(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var names []string
	if err := decode.JSON(rc, &names); err != nil {
		return err
	}
	if names == nil {
		return fault.New(fault.Malformed, "The body must be an array of names.")
	}
	players, err := s.Profiles.Named(ctx, names)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toPlayersJSON(players))
}

// wornJSON is a skin that the user's own profile wears, or a cape that it may wear.
type wornJSON struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	URL     string `json:"url"`
	Variant string `json:"variant,omitempty"` // of a skin
	Alias   string `json:"alias,omitempty"`   // of a cape
}

// handleOwnProfile handles GET /minecraftservices/minecraft/profile.
func (s *Server) handleOwnProfile(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	if err := checkProfile(user); err != nil {
		return err
	}
	profile, err := s.Profiles.Find(ctx, user.Player.UUID)
	if err != nil {
		return err
	}
	capes, err := s.Uploads.Capes(ctx, user.ID)
	if err != nil {
		return err
	}
	response := struct {
		playerJSON
		Skins []wornJSON `json:"skins"`
		Capes []wornJSON `json:"capes"`
	}{toPlayerJSON(profile.NamedPlayer), []wornJSON{}, []wornJSON{}}
	if profile.Skin != (skin.Hash{}) {
		variant := "CLASSIC"
		if profile.Slim {
			variant = "SLIM"
		}
		response.Skins = []wornJSON{{ID: textureID(profile.Skin), State: "ACTIVE", URL: s.Profiles.TextureURL(profile.Skin), Variant: variant}}
	}
	add := func(hash skin.Hash, state, alias string) {
		response.Capes = append(response.Capes, wornJSON{ID: textureID(hash), State: state, URL: s.Profiles.TextureURL(hash), Alias: alias})
	}
	if profile.Cape != (skin.Hash{}) {
		add(profile.Cape, "ACTIVE", "Cape")
	}
	for _, cape := range capes {
		if cape.Hash != profile.Cape {
			add(cape.Hash, "INACTIVE", cape.ItemName)
		}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, response)
}

// textureID returns a UUID that stands for a texture's file.
func textureID(hash skin.Hash) string {
	return toID(uuid.NewHash(sha256.New(), uuid.Nil, hash[:], 5))
}

// redirectToTexture returns a handler of GET /skins/MinecraftSkins/{name}.png and of
// GET /skins/MinecraftCloaks/{name}.png: games before 1.7.6 ask for pictures by name.
func (s *Server) redirectToTexture(path string) httpserver.Handler {
	return func(_ context.Context, rc *fasthttp.RequestCtx) error {
		file := pathText(rc, "file")
		if !strings.HasSuffix(file, ".png") {
			return fault.New(fault.NotFound, "There is nothing at this path.")
		}
		rc.Response.Header.Set(fasthttp.HeaderLocation, s.Profiles.TexturesURL()+path+url.PathEscape(file))
		rc.SetStatusCode(fasthttp.StatusFound)
		return nil
	}
}
