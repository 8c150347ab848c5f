package core

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// AuditEntry is one act of an administrator.
type AuditEntry struct {
	ID         int64
	ActedAt    time.Time
	Actor      UserID          // 0 for Terminal
	ActorEmail string          // as it was then; empty for Terminal
	Address    netip.Addr      // of none for Terminal
	Action     string          // as user.permission
	Subject    string          // as user:12
	Details    json.RawMessage // an object: what the subject was called, and what changed
}

// AuditQuery says which acts are wanted. What is nil, zero or empty asks for any.
type AuditQuery struct {
	Actor           *UserID // 0 is Terminal
	Action, Subject string
	Before          int64 // only entries with a lower id
	Limit           int
}

// AuditStore keeps what administrators did. Entries are written by the acts
// themselves, in their transactions, and never change.
type AuditStore interface {
	// AuditLog lists acts, the latest first.
	AuditLog(ctx context.Context, query AuditQuery) ([]AuditEntry, error)
}

// Audit is the log of what administrators did.
type Audit struct {
	store AuditStore
}

// NewAudit returns the log kept in a store.
func NewAudit(store AuditStore) *Audit { return &Audit{store: store} }

// maxAuditFilter is the most characters of an action or a subject that is looked
// for, more than any has.
const maxAuditFilter = 100

// List returns acts, the latest first, and whether there are earlier ones.
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
