package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.RefusalStore = (*DB)(nil)

const insertRefusal = `
	INSERT INTO refused_pixels (tid, pixels, name, type, refused_by) SELECT tid, pixels, name, type, nullif($2, 0) FROM textures WHERE tid = $1
	ON CONFLICT DO NOTHING`

const insertReportedRefusal = `
	WITH inserted AS (
		INSERT INTO refused_pixels (tid, pixels, name, type, refused_by) SELECT tid, pixels, name, type, nullif($2, 0) FROM reports WHERE rid = $1 AND pixels IS NOT NULL
		ON CONFLICT DO NOTHING
	)
	SELECT pixels IS NOT NULL AS known FROM reports WHERE rid = $1`

// refuseReported refuses the pixels of a reported texture that is deleted.
func refuseReported(ctx context.Context, tx pgx.Tx, by core.Actor, report core.ReportID) error {
	rows, err := collect[struct{ Known bool }](ctx, tx, statement{insertReportedRefusal, []any{report, by.ID}})
	if err == nil && len(rows) > 0 && !rows[0].Known {
		err = fault.New(fault.NotFound, "The texture is deleted, and its pixels are not known.")
	}
	return err
}

// isRefused tells whether the pixels of a texture are refused to user u.
func isRefused(pixels string) string {
	return effectivePermission + ` < 1 AND EXISTS (SELECT FROM refused_pixels r WHERE r.pixels = ` + pixels + `)`
}

const selectRefusals = `
	SELECT tid AS texture, name, type, refused_at, coalesce(refused_by, 0) AS refused_by,
		coalesce((SELECT nickname FROM users WHERE uid = refused_by), '') AS refused_by_nickname
	FROM refused_pixels WHERE tid = ANY ($1) ORDER BY tid DESC`

// Refusals lists refusals.
func (db *DB) Refusals(ctx context.Context, page, perPage int) (result core.Page[core.Refusal], err error) {
	total, more, ids, err := db.find(ctx, "tid", "refused_pixels", filter{}, page, perPage)
	if err == nil {
		result.Total, result.More = total, more
		result.Items, err = collect[core.Refusal](ctx, db.reads, statement{selectRefusals, []any{ids}})
	}
	return result, failure("list refused pixels", err)
}

const deleteRefusal = `DELETE FROM refused_pixels WHERE tid = $1 RETURNING name, type`

// LiftRefusal deletes a refusal.
func (db *DB) LiftRefusal(ctx context.Context, by core.Actor, texture core.TextureID) error {
	return db.adminTx(ctx, "lift a refusal", func(tx pgx.Tx) error {
		admin, _, err := authorise(ctx, tx, by)
		if err != nil {
			return err
		}
		lifted, err := collect[struct {
			Name string    `json:"name"`
			Type skin.Type `json:"type"`
		}](ctx, tx, statement{deleteRefusal, []any{texture}})
		refusal, err := one(lifted, err, fault.New(fault.NotFound, "The pixels of texture %d are not refused.", texture))
		if err != nil {
			return err
		}
		return writeAudit(ctx, tx, admin, core.AuditTextureAllow, textureSubject(texture), refusal)
	})
}
