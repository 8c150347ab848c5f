package core

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/veneer-skins/veneer/shared/fault"
)

// UnreadNotification is an entry in a list of notifications.
type UnreadNotification struct {
	ID    uuid.UUID
	Title string
}

// Message is what a notification says. One of the service itself also has a kind with parameters, from which pages
// write it in the reader's language.
type Message struct {
	Title      string
	Content    string // Markdown
	Kind       string // empty for what administrators write
	Parameters map[string]any
}

// Notification is a message to users.
type Notification struct {
	Message
	SentAt time.Time
}

// ListedNotification is an entry in a list of all notifications of a user.
type ListedNotification struct {
	ID         uuid.UUID
	Title      string
	Kind       string
	Parameters map[string]any
	SentAt     time.Time
	Read       bool
}

// HTML returns the content as sanitized HTML, without scripts.
func (n Notification) HTML() (string, error) { return markdownHTML(n.Content) }

// markdownHTML returns Markdown as sanitized HTML, without scripts.
func markdownHTML(text string) (string, error) {
	var html bytes.Buffer
	if err := markdown.Convert([]byte(text), &html); err != nil {
		return "", fmt.Errorf("convert Markdown: %w", err)
	}
	return sanitise.SanitizeReader(&html).String(), nil
}

var (
	// Cells are aligned by an attribute, since the sanitizer removes styles.
	markdown = goldmark.New(goldmark.WithExtensions(
		extension.Linkify, extension.Strikethrough, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
	))
	sanitise = bluemonday.UGCPolicy()
)

// Audience is a group of users that get a notification.
type Audience string

// The audiences. A notification goes to the accounts that exist when it is sent. One for
// NormalUsers is shown to users with the permission Normal at the time of reading.
const (
	AllUsers    Audience = "all"
	NormalUsers Audience = "normal"
)

// Recipients selects users: an audience, or single users by uid or by the comparison key of an
// e-mail address.
type Recipients struct {
	Audience Audience // empty for single users
	Users    []UserID
	EmailKey string
}

// NotificationStore holds notifications.
type NotificationStore interface { //nolint:interfacebloat // Notifications, its only user, calls each method
	// Unread lists the unread notifications of the token's user, the newest first.
	Unread(ctx context.Context, token VerifiedToken) ([]UnreadNotification, error)

	// ReadNotification returns a notification of a user, and marks it read. An unknown
	// notification, or one of another user, is a NotFound fault.
	ReadNotification(ctx context.Context, user UserID, id uuid.UUID) (Notification, error)

	// Notifications lists all notifications of the token's user, the newest first.
	Notifications(ctx context.Context, token VerifiedToken, page, perPage int) (Page[ListedNotification], error)

	// Notify sends users a notification and returns how many get it; of an audience, the current
	// members. It skips users that do not exist.
	Notify(ctx context.Context, to Recipients, message Message) (int, error)

	// Announce does what Notify does as an act of an administrator. An unknown single user is a
	// NotFound fault.
	Announce(ctx context.Context, by Actor, to Recipients, title, content string) (int, error)

	// HasNotifications reports whether a user has any notification, read or not.
	HasNotifications(ctx context.Context, user UserID) (bool, error)

	// TrimNotifications deletes messages sent before a time and returns how many.
	TrimNotifications(ctx context.Context, before time.Time) (int, error)
}

// Notifications sends messages to users.
type Notifications struct {
	store     notificationStore
	retention time.Duration
	now       Clock
}

// notificationStore is the store that Notifications needs.
type notificationStore interface {
	NotificationStore
	emailKeys
}

// NewNotifications returns the notifications of a store. They are deleted after the retention; 0
// keeps them forever.
func NewNotifications(store notificationStore, retention time.Duration, now Clock) *Notifications {
	return &Notifications{store: store, retention: retention, now: now}
}

// Unread lists the unread notifications of the token's user, the newest first.
func (n *Notifications) Unread(ctx context.Context, token VerifiedToken) ([]UnreadNotification, error) {
	return n.store.Unread(ctx, token)
}

// List returns a page of all notifications of the token's user, the newest first. A page past the end is empty.
func (n *Notifications) List(ctx context.Context, token VerifiedToken, page, perPage int) (Page[ListedNotification], error) {
	var wrong fieldFaults
	wrong.addPage(page, perPage, maxPage)
	if err := wrong.fault(); err != nil {
		return Page[ListedNotification]{}, err
	}
	return n.store.Notifications(ctx, token, page, perPage)
}

// Read returns a notification of the caller, and marks it read.
func (n *Notifications) Read(ctx context.Context, caller Caller, id uuid.UUID) (Notification, error) {
	return n.store.ReadNotification(ctx, caller.ID, id)
}

// Trim deletes messages older than the retention and returns how many.
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

// Send sends users a notification with Markdown content, and returns how many get it.
func (n *Notifications) Send(ctx context.Context, users []UserID, message Message) (int, error) {
	var wrong fieldFaults
	message.Title, message.Content = wrong.addMessage(message.Title, message.Content)
	if err := wrong.fault(); err != nil {
		return 0, err
	}
	return n.store.Notify(ctx, Recipients{Users: users}, message)
}

// Announce sends a notification for an administrator, and returns how many users get it. Recipients
// are all, normal, a uid or an e-mail address. An unknown single user is a NotFound fault.
func (n *Notifications) Announce(ctx context.Context, by Actor, to, title, content string) (int, error) {
	var wrong fieldFaults
	recipients, err := parseRecipients(ctx, n.store, to)
	wrong.add(err)
	title, content = wrong.addMessage(title, content)
	if err := wrong.fault(); err != nil {
		return 0, err
	}
	return n.store.Announce(ctx, by, recipients, title, content)
}

// parseRecipients parses all, normal, a uid or an e-mail address.
func parseRecipients(ctx context.Context, store emailKeys, to string) (Recipients, error) {
	to = trimAddress(to)
	uid, err := strconv.ParseInt(to, 10, 64)
	switch {
	case to == string(AllUsers) || to == string(NormalUsers):
		return Recipients{Audience: Audience(to)}, nil
	case err == nil:
		return Recipients{Users: []UserID{UserID(uid)}}, nil
	case to == "" || !isPrintable(to):
		return Recipients{}, fault.Field("to", "Say whom it is for: all, normal, a uid or an e-mail address.")
	default:
		key, err := accountKey(ctx, store, to)
		return Recipients{EmailKey: key}, err
	}
}

// addMessage adds the faults of a notification's text, and returns that text normalized.
func (f *fieldFaults) addMessage(title, content string) (cleanTitle, cleanContent string) {
	title, err := validateLine("title", title)
	f.add(err)
	content, err = validateText("content", content, MaxContent)
	f.add(err)
	return title, content
}
