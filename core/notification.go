package core

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// UnreadNotification is what a list of notifications shows.
type UnreadNotification struct {
	ID    uuid.UUID
	Title string
}

// Notification is something that a user was told.
type Notification struct {
	Title   string
	Content string // Markdown
	SentAt  time.Time
}

// HTML returns the content as HTML that is safe to show: whoever wrote it can run
// nothing in the reader's browser.
func (n Notification) HTML() (string, error) {
	var html bytes.Buffer
	if err := markdown.Convert([]byte(n.Content), &html); err != nil {
		return "", fmt.Errorf("convert a notification's Markdown: %w", err)
	}
	return sanitise.SanitizeReader(&html).String(), nil
}

var (
	// Cells are aligned by an attribute, since no style passes.
	markdown = goldmark.New(goldmark.WithExtensions(
		extension.Linkify, extension.Strikethrough, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
	))
	sanitise = bluemonday.UGCPolicy()
)

// Audience is a group of users who are told something together.
type Audience string

// The audiences. A notification is for those who have an account when it is sent,
// and of NormalUsers for those who are normal when they look.
const (
	AllUsers    Audience = "all"
	NormalUsers Audience = "normal"
)

// Recipients is whom a notification is for: an audience, or users by their uids or
// by the comparison key of an e-mail address.
type Recipients struct {
	Audience Audience // empty for single users
	Users    []UserID
	EmailKey string
}

// NotificationStore keeps what users are told.
type NotificationStore interface {
	// Unread lists the unread notifications of a ticket's user, the newest first.
	Unread(ctx context.Context, token VerifiedToken) ([]UnreadNotification, error)

	// ReadNotification returns a notification of a user's, and marks it read. It
	// returns a NotFound fault when there is none, or it is somebody else's.
	ReadNotification(ctx context.Context, user UserID, id uuid.UUID) (Notification, error)

	// Notify gives users an unread notification and returns how many, of an audience
	// those who belong to it at the moment. Users that do not exist are left out.
	Notify(ctx context.Context, to Recipients, title, content string) (int, error)

	// Announce does what Notify does as an act of an administrator. It returns a
	// NotFound fault when there is no such single user.
	Announce(ctx context.Context, by Actor, to Recipients, title, content string) (int, error)

	// HasNotifications reports whether a user has any notification, read or not.
	HasNotifications(ctx context.Context, user UserID) (bool, error)

	// TrimNotifications deletes what was sent before a time and returns how many
	// messages that were.
	TrimNotifications(ctx context.Context, before time.Time) (int, error)
}

// Notifications tell users something.
type Notifications struct {
	store     NotificationStore
	retention time.Duration
	now       Clock
}

// NewNotifications returns the notifications kept in a store. They are kept for a
// while, or for ever if that is 0.
func NewNotifications(store NotificationStore, retention time.Duration, now Clock) *Notifications {
	return &Notifications{store: store, retention: retention, now: now}
}

// Unread lists the unread notifications of a ticket's user, the newest first.
func (n *Notifications) Unread(ctx context.Context, token VerifiedToken) ([]UnreadNotification, error) {
	return n.store.Unread(ctx, token)
}

// Read returns one of the caller's notifications, and marks it read.
func (n *Notifications) Read(ctx context.Context, caller Caller, id uuid.UUID) (Notification, error) {
	return n.store.ReadNotification(ctx, caller.ID, id)
}

// Trim deletes the notifications that have been kept long enough and returns how
// many messages that were.
func (n *Notifications) Trim(ctx context.Context) (int, error) {
	if n.retention == 0 {
		return 0, nil
	}
	return n.store.TrimNotifications(ctx, n.now().Add(-n.retention))
}

// HasAny reports whether a user has any notification, read or not.
func (n *Notifications) HasAny(ctx context.Context, user UserID) (bool, error) {
	return n.store.HasNotifications(ctx, user)
}

// MaxContent is the most characters in a notification's content.
const MaxContent = 20_000

// Send gives users a notification, and returns how many. Its content is Markdown.
func (n *Notifications) Send(ctx context.Context, users []UserID, title, content string) (int, error) {
	var wrong fieldFaults
	title, content = wrong.addMessage(title, content)
	if err := wrong.fault(); err != nil {
		return 0, err
	}
	return n.store.Notify(ctx, Recipients{Users: users}, title, content)
}

// Announce gives users a notification on an administrator's authority, and returns
// how many. It is for all, for normal users, or for one, by uid or by e-mail
// address; without such a user it returns a NotFound fault.
func (n *Notifications) Announce(ctx context.Context, by Actor, to, title, content string) (int, error) {
	var wrong fieldFaults
	recipients, err := parseRecipients(to)
	wrong.add(err)
	title, content = wrong.addMessage(title, content)
	if err := wrong.fault(); err != nil {
		return 0, err
	}
	return n.store.Announce(ctx, by, recipients, title, content)
}

// parseRecipients reads whom a notification is for.
func parseRecipients(to string) (Recipients, error) {
	to = strings.TrimSpace(to)
	uid, err := strconv.ParseInt(to, 10, 64)
	switch {
	case to == string(AllUsers) || to == string(NormalUsers):
		return Recipients{Audience: Audience(to)}, nil
	case err == nil:
		return Recipients{Users: []UserID{UserID(uid)}}, nil
	case to == "" || !isPrintable(to):
		return Recipients{}, fault.Field("to", "Say whom it is for: all, normal, a uid or an e-mail address.")
	default:
		return Recipients{EmailKey: casefold.Key(to)}, nil
	}
}

// addMessage takes note of what a notification must not say, and returns it as it
// is kept.
func (f *fieldFaults) addMessage(title, content string) (cleanTitle, cleanContent string) {
	title, err := validateLine("title", title)
	f.add(err)
	content, err = validateText("content", content, MaxContent)
	f.add(err)
	return title, content
}
