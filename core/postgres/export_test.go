package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
)

// Charge is what other parts of the package change scores with.
var Charge = charge

// MigrateTo brings the schema to a version, up or down.
func (db *DB) MigrateTo(ctx context.Context, version int32) error {
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	m, err := migrator(ctx, conn)
	if err != nil {
		return err
	}
	return m.MigrateTo(ctx, version)
}

// SetPermission changes what a user may do on nobody's authority, and no log tells.
func (db *DB) SetPermission(ctx context.Context, user core.UserID, permission core.Permission) error {
	_, err := setPermission(ctx, db.pool, user, permission)
	return err
}

// Queries whose plans tests look at.
const (
	SelectLibraryChanges = selectLibraryChanges
	SelectTextures       = selectTextures
)
