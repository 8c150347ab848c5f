package yggdrasil

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

// selectedProfile is the UUID of a player. Some clients send the whole profile, as sign-ins return it.
type selectedProfile string

// UnmarshalJSON decodes a text, or the id of an object.
func (p *selectedProfile) UnmarshalJSON(text []byte) error {
	var profile struct {
		ID string `json:"id"`
	}
	if text[0] != '{' {
		return json.Unmarshal(text, (*string)(p))
	}
	err := json.Unmarshal(text, &profile)
	*p = selectedProfile(profile.ID)
	return err
}

// handleJoin handles POST /sessionserver/session/minecraft/join.
func (s *Server) handleJoin(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request struct {
		AccessToken     string          `json:"accessToken"`
		SelectedProfile selectedProfile `json:"selectedProfile"`
		ServerID        *string         `json:"serverId"`
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if request.ServerID == nil {
		return fault.Field("serverId", "The serverId is missing.")
	}
	player, ok := parseID(string(request.SelectedProfile))
	if !ok {
		return core.ErrLauncherToken // no token is bound to it
	}
	if err := s.Joins.Join(ctx, request.AccessToken, player, []byte(*request.ServerID), s.network(rc)); err != nil {
		return err
	}
	return writeNoContent(rc)
}

// handleHasJoined handles GET /sessionserver/session/minecraft/hasJoined.
func (s *Server) handleHasJoined(ctx context.Context, rc *fasthttp.RequestCtx) error {
	query := rc.QueryArgs()
	var from *netip.Prefix
	if text := string(query.Peek("ip")); text != "" {
		from = new(netip.Prefix) // no client has what is no address
		if address, err := netip.ParseAddr(text); err == nil {
			*from = clientip.Prefix(address.Unmap().WithZone(""))
		}
	}
	if !query.Has("username") || !query.Has("serverId") {
		return writeNoContent(rc)
	}
	profile, err := s.Joins.HasJoined(ctx, string(query.Peek("username")), query.Peek("serverId"), from)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return writeNoContent(rc)
	case err != nil:
		return err
	}
	return s.writeProfile(ctx, rc, profile, true)
}

// handleOldJoin handles GET /sessionserver/game/joinserver.jsp of games before 1.7. Their session is
// token:, the access token, a colon and the UUID. The answer is the text OK, or what the game shows.
func (s *Server) handleOldJoin(ctx context.Context, rc *fasthttp.RequestCtx) error {
	query := rc.QueryArgs()
	session, _ := strings.CutPrefix(string(query.Peek("sessionId")), "token:")
	token, id, _ := strings.Cut(session, ":")
	player, ok := parseID(id)
	if !ok || !query.Has("serverId") {
		return writeText(rc, "Bad login")
	}
	err := s.Joins.Join(ctx, token, player, query.Peek("serverId"), s.network(rc))
	switch kind := fault.KindOf(err); {
	case err == nil:
		return writeText(rc, "OK")
	case kind == fault.Unauthenticated, kind == fault.Forbidden:
		return writeText(rc, "Bad login")
	default:
		return err
	}
}

// handleOldCheck handles GET /sessionserver/game/checkserver.jsp of servers before 1.7. The answer is
// the text YES or NO.
func (s *Server) handleOldCheck(ctx context.Context, rc *fasthttp.RequestCtx) error {
	query := rc.QueryArgs()
	_, err := s.Joins.HasJoined(ctx, string(query.Peek("user")), query.Peek("serverId"), nil)
	switch {
	case err == nil:
		return writeText(rc, "YES")
	case fault.KindOf(err) == fault.NotFound:
		return writeText(rc, "NO")
	default:
		return err
	}
}

// handleBlockedServers handles GET /sessionserver/blockedservers: the SHA-1 of each server that games
// refuse. There are none.
func (*Server) handleBlockedServers(_ context.Context, rc *fasthttp.RequestCtx) error {
	return writeText(rc, "")
}

// writeText writes status 200 with a text.
func writeText(rc *fasthttp.RequestCtx, text string) error {
	rc.SetContentType("text/plain; charset=utf-8")
	rc.SetBodyString(text)
	return nil
}
