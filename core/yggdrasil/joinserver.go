package yggdrasil

import (
	"context"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

// handleJoin handles POST /sessionserver/session/minecraft/join.
func (s *Server) handleJoin(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request struct {
		AccessToken     string  `json:"accessToken"`
		SelectedProfile string  `json:"selectedProfile"`
		ServerID        *string `json:"serverId"`
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if request.ServerID == nil {
		return fault.Field("serverId", "The serverId is missing.")
	}
	player, ok := parseID(request.SelectedProfile)
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
