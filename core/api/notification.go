package api

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// unreadBody is an unread notification as the API lists it.
type unreadBody struct {
	ID    uuid.UUID `json:"id"`
	Title string    `json:"title"`
}

// notificationBody is a notification as the API writes it.
type notificationBody struct {
	Title   string    `json:"title"`
	Content string    `json:"content"` // HTML
	Time    timestamp `json:"time"`
}

// notifications handles GET /api/user/notifications.
func (s *Server) notifications(ctx context.Context, rc *fasthttp.RequestCtx, ticket core.VerifiedToken) error {
	unread, err := s.Notifications.Unread(ctx, ticket)
	if err != nil {
		return err
	}
	bodies := make([]unreadBody, len(unread))
	for i, n := range unread {
		bodies[i] = unreadBody(n)
	}
	return serve.JSON(rc, fasthttp.StatusOK, bodies)
}

// readNotification handles POST /api/user/notifications/{id}.
func (s *Server) readNotification(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	text, _ := rc.UserValue("id").(string)
	id, err := uuid.Parse(text)
	if err != nil || !strings.EqualFold(id.String(), text) { // it may be written in other ways
		return nothingHere()
	}
	notification, err := s.Notifications.Read(ctx, caller, id)
	if err != nil {
		return err
	}
	content, err := notification.HTML()
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, notificationBody{notification.Title, content, timestamp(notification.SentAt)})
}

// announcedBody says how many users were told something.
type announcedBody struct {
	Users int `json:"users"`
}

// announce handles POST /api/admin/notifications.
func (s *Server) announce(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	to, title, content := f.text("to"), f.text("title"), f.text("content")
	if err := f.fault(); err != nil {
		return err
	}
	users, err := s.Notifications.Announce(ctx, by, to, title, content)
	if err != nil {
		return err
	}
	return done(rc, "The notification is sent.", announcedBody{users})
}
