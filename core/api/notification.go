package api

import (
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// unreadJSON is an unread notification in a list.
type unreadJSON struct {
	ID    uuid.UUID `json:"id"`
	Title string    `json:"title"`
}

// notificationJSON is a notification that was read.
type notificationJSON struct {
	Title   string    `json:"title"`
	Content string    `json:"content"` // HTML
	Time    timestamp `json:"time"`
	kindJSON
}

// kindJSON is what a message of the service itself says, and about what.
type kindJSON struct {
	Kind       string         `json:"kind,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// listedNotificationJSON is a notification in the list of all.
type listedNotificationJSON struct {
	ID    uuid.UUID `json:"id"`
	Title string    `json:"title"`
	Time  timestamp `json:"time"`
	Read  bool      `json:"read"`
	kindJSON
}

// handleListAllNotifications handles GET /api/notifications.
func (s *Server) handleListAllNotifications(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	f := decode.ParseQuery(rc)
	number, perPage := f.Page(core.DefaultSearchPerPage)
	if err := f.Err(); err != nil {
		return err
	}
	page, err := s.Notifications.List(ctx, token, number, perPage)
	if err != nil {
		return err
	}
	bodies := make([]listedNotificationJSON, len(page.Items))
	for i, n := range page.Items {
		bodies[i] = listedNotificationJSON{n.ID, n.Title, timestamp(n.SentAt), n.Read, kindJSON{n.Kind, n.Parameters}}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toPageJSON(number, perPage, page.Total, bodies))
}

// handleListNotifications handles GET /api/user/notifications.
func (s *Server) handleListNotifications(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	unread, err := s.Notifications.Unread(ctx, token)
	if err != nil {
		return err
	}
	bodies := make([]unreadJSON, len(unread))
	for i, n := range unread {
		bodies[i] = unreadJSON(n)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, bodies)
}

// handleReadNotification handles POST /api/user/notifications/{id}.
func (s *Server) handleReadNotification(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	id, err := pathUUID(rc, "id")
	if err != nil {
		return err
	}
	notification, err := s.Notifications.Read(ctx, caller, id)
	if err != nil {
		return err
	}
	content, err := notification.HTML()
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, notificationJSON{
		notification.Title, content, timestamp(notification.SentAt), kindJSON{notification.Kind, notification.Parameters},
	})
}

// recipientsJSON is the number of users that a notification was sent to.
type recipientsJSON struct {
	Users int `json:"users"`
}

// handleSendNotification handles POST /api/admin/notifications.
func (s *Server) handleSendNotification(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	f := decode.ParseForm(rc)
	to, title, content := f.Str("to"), f.Str("title"), f.Str("content")
	if err := f.Err(); err != nil {
		return err
	}
	users, err := s.Notifications.Announce(ctx, by, to, title, content)
	if err != nil {
		return err
	}
	return writeOK(rc, "The notification is sent.", recipientsJSON{users})
}
