package core

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// AuditAction is what an administrator did: a kind of subject, and a verb.
type AuditAction string

// The actions. AuditActions lists them.
const (
	AuditUserAdd          AuditAction = "user.add"
	AuditUserNickname     AuditAction = "user.nickname"
	AuditUserEmail        AuditAction = "user.email"
	AuditUserPassword     AuditAction = "user.password"
	AuditUserVerified     AuditAction = "user.verified"
	AuditUserScore        AuditAction = "user.score"
	AuditUserPermission   AuditAction = "user.permission"
	AuditUserDelete       AuditAction = "user.delete"
	AuditClosetAdd        AuditAction = "closet.add"
	AuditClosetRemove     AuditAction = "closet.remove"
	AuditPlayerRename     AuditAction = "player.rename"
	AuditPlayerMove       AuditAction = "player.move"
	AuditPlayerDress      AuditAction = "player.dress"
	AuditPlayerUndress    AuditAction = "player.undress"
	AuditPlayerDelete     AuditAction = "player.delete"
	AuditTextureChange    AuditAction = "texture.change"
	AuditTextureDelete    AuditAction = "texture.delete"
	AuditTextureAllow     AuditAction = "texture.allow"
	AuditReportSettle     AuditAction = "report.settle"
	AuditNotificationSend AuditAction = "notification.send"
)

// AuditActions are all actions. The console has words for each.
var AuditActions = []AuditAction{
	AuditUserAdd, AuditUserNickname, AuditUserEmail, AuditUserPassword, AuditUserVerified, AuditUserScore, AuditUserPermission, AuditUserDelete,
	AuditClosetAdd, AuditClosetRemove, AuditPlayerRename, AuditPlayerMove, AuditPlayerDress, AuditPlayerUndress, AuditPlayerDelete,
	AuditTextureChange, AuditTextureDelete, AuditTextureAllow, AuditReportSettle, AuditNotificationSend,
}

// AuditEntry records one act of an administrator.
type AuditEntry struct {
	ID         int64
	ActedAt    time.Time
	Actor      UserID     // 0 for CLIActor
	ActorEmail string     // at that time; empty for CLIActor
	Address    netip.Addr // the zero Addr for CLIActor
	Action     AuditAction
	Subject    string          // such as user:12
	Details    json.RawMessage // a JSON object: name of the subject, and what changed
}

// AuditQuery selects audit entries. Zero values select all.
type AuditQuery struct {
	Actor           *UserID // 0 is CLIActor
	Action, Subject string
	Before          int64 // only entries with a lower id
	Limit           int
}

// AuditStore reads the audit log. Entries are written by the acts themselves, in their
// transactions, and never change.
type AuditStore interface {
	// AuditLog lists entries, the latest first.
	AuditLog(ctx context.Context, query AuditQuery) ([]AuditEntry, error)
}

// Audit is the log of the acts of administrators.
type Audit struct {
	store AuditStore
}

// NewAudit returns the audit log of a store.
func NewAudit(store AuditStore) *Audit { return &Audit{store: store} }

// maxAuditFilter bounds the characters of an action or subject in a query. None is that long.
const maxAuditFilter = 100

// List returns entries, the latest first, and whether there are earlier ones.
func (a *Audit) List(ctx context.Context, query AuditQuery) (entries []AuditEntry, more bool, err error) {
	var wrong fieldFaults
	wrong.addPart("action", &query.Action, maxAuditFilter)
	wrong.addPart("subject", &query.Subject, maxAuditFilter)
	if query.Actor != nil && *query.Actor < 0 {
		wrong.add(fault.Field("actor", "The actor must be at least 1, or 0 for the program core itself."))
	}
	if query.Limit < 1 || query.Limit > maxPerPage {
		wrong.add(fault.Field("perPage", "There may be 1 to %d items on a page.", maxPerPage))
	}
	if err := wrong.fault(); err != nil {
		return nil, false, err
	}

	page := query.Limit
	query.Limit++
	entries, err = a.store.AuditLog(ctx, query)
	if len(entries) > page {
		entries, more = entries[:page], true
	}
	return entries, more, err
}
