package yggdrasil

import (
	"context"
	"encoding/hex"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// playerJSON is a player without properties.
type playerJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func toPlayerJSON(p core.NamedPlayer) playerJSON { return playerJSON{toID(p.UUID), p.Name} }

func toPlayersJSON(players []core.NamedPlayer) []playerJSON {
	all := make([]playerJSON, len(players))
	for i, p := range players {
		all[i] = toPlayerJSON(p)
	}
	return all
}

// toID returns a UUID without hyphens.
func toID(id uuid.UUID) string { return hex.EncodeToString(id[:]) }

// userJSON is the user of a token.
type userJSON struct {
	ID         string          `json:"id"`
	Properties []core.Property `json:"properties"`
}

// sessionJSON is a token in a response.
type sessionJSON struct {
	AccessToken       string       `json:"accessToken"`
	ClientToken       string       `json:"clientToken"`
	AvailableProfiles []playerJSON `json:"availableProfiles"`
	SelectedProfile   *playerJSON  `json:"selectedProfile,omitempty"`
	User              *userJSON    `json:"user,omitempty"`
}

func toSessionJSON(s core.LauncherSession, withUser bool) sessionJSON {
	session := sessionJSON{AccessToken: s.Token, ClientToken: s.ClientToken, AvailableProfiles: toPlayersJSON(s.Players)}
	if s.Selected != nil {
		session.SelectedProfile = new(toPlayerJSON(*s.Selected))
	}
	if withUser {
		session.User = &userJSON{ID: toID(s.User), Properties: []core.Property{}}
	}
	return session
}

// errCredentials is the fault of a wrong username or password, in the words of the protocol.
var errCredentials = fault.New(fault.Unauthenticated, "Invalid credentials. Invalid username or password.")

// credentialsFault returns errCredentials for the domain's fault of wrong credentials.
func credentialsFault(err error) error {
	if err != nil && fault.KindOf(err) == fault.Unauthenticated {
		return errCredentials
	}
	return err
}

// handleAuthenticate handles POST /authserver/authenticate.
func (s *Server) handleAuthenticate(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request struct {
		Username    string      `json:"username"`
		Password    string      `json:"password"`
		ClientToken *string     `json:"clientToken"`
		RequestUser decode.Bool `json:"requestUser"`
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	session, err := s.Tokens.Authenticate(ctx, request.Username, request.Password, request.ClientToken, s.network(rc))
	if err != nil {
		return credentialsFault(err)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSessionJSON(session, bool(request.RequestUser)))
}

// tokenRequest is a request about a token.
type tokenRequest struct {
	AccessToken string  `json:"accessToken"`
	ClientToken *string `json:"clientToken"`
}

// handleRefresh handles POST /authserver/refresh.
func (s *Server) handleRefresh(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request struct {
		tokenRequest
		RequestUser     decode.Bool `json:"requestUser"`
		SelectedProfile *struct {
			ID string `json:"id"`
		} `json:"selectedProfile"`
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	var selected *uuid.UUID
	if request.SelectedProfile != nil {
		id, _ := parseID(request.SelectedProfile.ID) // no player has the zero UUID
		selected = &id
	}
	session, err := s.Tokens.Refresh(ctx, request.AccessToken, request.ClientToken, selected)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSessionJSON(session, bool(request.RequestUser)))
}

// handleValidate handles POST /authserver/validate.
func (s *Server) handleValidate(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request tokenRequest
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if _, err := s.Tokens.Validate(ctx, request.AccessToken, request.ClientToken); err != nil {
		return err
	}
	return writeNoContent(rc)
}

// handleInvalidate handles POST /authserver/invalidate. The client token is ignored.
func (s *Server) handleInvalidate(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request tokenRequest
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if err := s.Tokens.Invalidate(ctx, request.AccessToken); err != nil {
		return err
	}
	return writeNoContent(rc)
}

// handleSignOut handles POST /authserver/signout.
func (s *Server) handleSignOut(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if err := s.Tokens.SignOut(ctx, request.Username, request.Password, s.network(rc)); err != nil {
		return credentialsFault(err)
	}
	return writeNoContent(rc)
}
