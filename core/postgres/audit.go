package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
)

var _ core.AuditStore = (*DB)(nil)

// adminTx runs an administrator's action as one transaction, and calls onChange after it. The
// work calls authorise and writeAudit. An owner's change needs neither, and so only one round trip.
func (db *DB) adminTx(ctx context.Context, operation string, work func(pgx.Tx) error) error {
	if err := db.writes.transact(ctx, work); err != nil {
		return failure(operation, err)
	}
	db.onChange()
	return nil
}

// lockActorAndSubjects is the first lock of an action, as users come first everywhere. It locks
// in the order of uid, so that two administrators that act on each other do not deadlock.
const lockActorAndSubjects = `SELECT ` + userColumns + ` FROM users u WHERE u.uid = ANY ($1) ORDER BY u.uid FOR NO KEY UPDATE`

// authorise locks the administrator and the subjects of an action until the commit. It returns
// the administrator with the current permission, and those subjects that exist. The caller
// checks what the administrator may do to them.
func authorise(ctx context.Context, tx pgx.Tx, admin core.Actor, subjects ...core.UserID) (core.Actor, map[core.UserID]core.User, error) {
	locked, err := collect[core.User](ctx, tx, statement{lockActorAndSubjects, []any{append([]core.UserID{admin.ID}, subjects...)}})
	if err != nil {
		return core.Actor{}, nil, err
	}
	users := make(map[core.UserID]core.User, len(locked))
	for _, user := range locked {
		users[user.ID] = user
	}
	if admin == core.CLIActor {
		return admin, users, nil
	}
	actor, ok := users[admin.ID]
	if !ok {
		return core.Actor{}, nil, core.ErrSignedOut
	}
	admin, err = core.NewActor(actor, admin.From)
	return admin, users, err
}

const insertAudit = `
	INSERT INTO audit_log (actor, actor_email, address, action, subject, details)
	VALUES ($1, coalesce((SELECT email FROM users WHERE uid = $1), ''), $2, $3, $4, coalesce(nullif($5::jsonb, 'null'), '{}'))`

// writeAudit writes an action to the audit log, in the transaction of the action. The subject
// is a kind and an id, as user:12. The details are encoded as a JSON object, or are nil, and
// hold no secret.
func writeAudit(ctx context.Context, tx pgx.Tx, admin core.Actor, action core.AuditAction, subject string, details any) error {
	encoded, err := json.Marshal(details)
	if err != nil {
		return fmt.Errorf("encode the details of %s: %w", action, err)
	}
	_, err = tx.Exec(ctx, insertAudit, admin.ID, admin.From, action, subject, encoded)
	return err
}

// AuditLog lists actions, the latest first.
func (db *DB) AuditLog(ctx context.Context, query core.AuditQuery) ([]core.AuditEntry, error) {
	var f filter
	if query.Actor != nil {
		f.add("actor = $%d", *query.Actor)
	}
	if query.Action != "" {
		f.add("action = $%d", query.Action)
	}
	if query.Subject != "" {
		f.add("subject = $%d", query.Subject)
	}
	if query.Before != 0 {
		f.add("id < $%d", query.Before)
	}
	sql := `SELECT id, acted_at, actor, actor_email, address, action, subject, details FROM audit_log` + f.where() + ` ORDER BY id DESC LIMIT ` + f.argument(query.Limit)
	entries, err := collect[core.AuditEntry](ctx, db.reads, statement{sql, f.args})
	return entries, failure("list the audit log", err)
}
