package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// userJSON is a user in a response.
type userJSON struct {
	UID        core.UserID     `json:"uid"`
	Email      string          `json:"email"`
	Nickname   string          `json:"nickname"`
	Avatar     core.TextureID  `json:"avatar"`
	Score      int64           `json:"score"`
	Permission core.Permission `json:"permission"`
	LastSignAt timestamp       `json:"last_sign_at"`
	NextSignAt timestamp       `json:"next_sign_at"`
	RegisterAt timestamp       `json:"register_at"`
	Verified   bool            `json:"verified"`
	Unread     *int            `json:"unread,omitempty"`

	BanReason   string     `json:"ban_reason,omitempty"`
	BannedUntil *timestamp `json:"banned_until,omitempty"`
}

func toUserJSON(u core.User) userJSON {
	body := userJSON{
		UID: u.ID, Email: u.Email, Nickname: u.Nickname, Avatar: u.Avatar, Score: u.Score, Permission: u.Permission,
		LastSignAt: timestamp(u.LastSignAt), NextSignAt: timestamp(u.NextSignAt), RegisterAt: timestamp(u.RegisterAt), Verified: u.Verified,
		Unread: u.Unread,
	}
	if u.Permission == core.Banned {
		body.BanReason, body.BannedUntil = u.BanReason, (*timestamp)(u.BannedUntil)
	}
	return body
}

// UserJSON returns what GET /api/user responds with, for other packages that respond with a user.
func UserJSON(u core.User) any { return toUserJSON(u) }

// limitRegistrations calls do, which reveals whether an e-mail address is registered, within the
// limits of registrations of the client address and its network. An Invalid fault reveals nothing and does not
// count.
func (s *Server) limitRegistrations(rc *fasthttp.RequestCtx, do func() error) error {
	refund, err := s.takeWithNetwork(rc, s.limiters.Registrations, s.limiters.NetworkRegistrations, s.addressKey(rc))
	if err != nil {
		return err
	}
	if err = do(); fault.KindOf(err) == fault.Invalid {
		refund()
	}
	return err
}

// handleRegister handles POST /api/auth/register: it adds a user and opens a session. Where
// registrations must be confirmed, the password is set by the confirmation.
func (s *Server) handleRegister(ctx context.Context, rc *fasthttp.RequestCtx) error {
	if s.config.Registration == "closed" {
		return fault.New(fault.Refused, "Registration is closed.")
	}
	f := decode.ParseForm(rc)
	confirm := s.config.Registration == "confirm"
	registration := core.Registration{Email: f.Str("email"), Nickname: f.Str("nickname"), PlayerName: f.OptionalStr("player_name", ""), TermsVersion: f.OptionalStr("terms_version", "")}
	if !confirm {
		registration.Password = f.Str("password")
	}
	if err := f.Err(); err != nil {
		return err
	}
	if confirm {
		return s.requestRegistration(ctx, rc, registration)
	}
	var user core.Credentials
	err := s.limitRegistrations(rc, func() (err error) {
		user, err = s.Users.Register(ctx, registration)
		return err
	})
	if err != nil {
		return err
	}
	return s.startSession(ctx, rc, user)
}

// requestRegistration sends the link that confirms a registration. The response is the same whether
// or not there is an account with the address.
func (s *Server) requestRegistration(ctx context.Context, rc *fasthttp.RequestCtx, registration core.Registration) error {
	err := s.limitRegistrations(rc, func() error { return s.Users.RequestRegistration(ctx, registration) })
	if err != nil {
		return err
	}
	return writeAccepted(rc, "An e-mail with a link is on its way to you. Open it, and choose a password, to make the account.")
}

// handleGetUser handles GET /api/user.
func (s *Server) handleGetUser(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	user, err := s.Sessions.UserWithUnread(ctx, token)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toUserJSON(user))
}

// handleUpdateUser handles PUT /api/user.
func (s *Server) handleUpdateUser(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	nickname := f.Str("nickname")
	if err := f.Err(); err != nil {
		return err
	}
	user, err := s.Accounts.Rename(ctx, caller.Owner(), caller.ID, nickname)
	if err != nil {
		return err
	}
	return writeOK(rc, "The nickname is changed.", toUserJSON(user))
}

// handleSetAvatar handles PUT /api/user/avatar.
func (s *Server) handleSetAvatar(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	tid := f.RequiredInteger("tid")
	if err := f.Err(); err != nil {
		return err
	}
	user, err := s.Accounts.SetAvatar(ctx, caller, core.TextureID(tid))
	if err != nil {
		return err
	}
	return writeOK(rc, "The avatar is set.", toUserJSON(user))
}

// handleChangeEmail handles PUT /api/user/email. Like a registration it reveals whether an address
// is registered: it counts for the same limit, and must be confirmed where registrations must.
func (s *Server) handleChangeEmail(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	email, password := f.Str("email"), f.Str("password")
	if err := f.Err(); err != nil {
		return err
	}
	if s.config.Registration == "confirm" {
		err := s.limitRegistrations(rc, func() error { return s.Accounts.RequestEmailChange(ctx, caller, email, password, s.network(rc)) })
		if err != nil {
			return err
		}
		return writeAccepted(rc, "An e-mail with a link is on its way to that address. Open it to make the address yours.")
	}
	var user core.User
	err := s.limitRegistrations(rc, func() (err error) {
		user, err = s.Accounts.ChangeEmail(ctx, caller, email, password, s.network(rc))
		return err
	})
	if err != nil {
		return err
	}
	return writeOK(rc, "The e-mail address is changed.", toUserJSON(user))
}

// handleChangePassword handles PUT /api/user/password.
func (s *Server) handleChangePassword(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	current, fresh := f.Str("current_password"), f.Str("new_password")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Accounts.ChangePassword(ctx, caller, current, fresh, s.network(rc)); err != nil {
		return err
	}
	return writeOK(rc, "The password is changed. Your other sessions have ended.", nil)
}

// handleDeleteUser handles DELETE /api/user.
func (s *Server) handleDeleteUser(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	password := f.Str("password")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Accounts.Delete(ctx, caller, password, s.network(rc)); err != nil {
		return err
	}
	return writeOK(rc, "The account is deleted.", nil)
}
