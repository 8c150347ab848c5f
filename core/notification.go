package core

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
)

// NotificationStore keeps what users are told.
type NotificationStore interface {
	// Notify gives users an unread notification. Users that do not exist are left
	// out.
	Notify(ctx context.Context, users []UserID, title, content string) error

	// Notified reports whether a user has any notification, read or not.
	Notified(ctx context.Context, user UserID) (bool, error)
}

// Notifications tell users something.
type Notifications struct {
	store NotificationStore
}

// NewNotifications returns the notifications kept in a store.
func NewNotifications(store NotificationStore) *Notifications {
	return &Notifications{store: store}
}

// Sent reports whether a user has any notification, read or not.
func (n *Notifications) Sent(ctx context.Context, user UserID) (bool, error) {
	return n.store.Notified(ctx, user)
}

// maxContent is the most characters in a notification's content.
const maxContent = 20_000

// Send gives users a notification. Its content is Markdown.
func (n *Notifications) Send(ctx context.Context, users []UserID, title, content string) error {
	var wrong fieldFaults
	title, err := name("title", title)
	wrong.add(err)
	switch length := utf8.RuneCountInString(content); {
	case !utf8.ValidString(content) || strings.ContainsFunc(content, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		wrong.add(fault.Field("content", "The content must be text without control characters but line feeds and tabs."))
	case length > maxContent:
		wrong.add(fault.Field("content", "The content has %d characters, but may have no more than %d.", length, maxContent))
	}
	if err := wrong.fault(); err != nil {
		return err
	}
	return n.store.Notify(ctx, users, title, content)
}
