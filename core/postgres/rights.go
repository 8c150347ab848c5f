package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/shared/config"
)

// AsOwner returns the configuration of core migrate: the owner's URL, if there is one, in place of all
// others.
func (c Config) AsOwner() Config {
	if c.OwnerURL != "" {
		c.URL, c.ListenURL, c.LibraryURL, c.setting = c.OwnerURL, "", "", "OWNER_DATABASE_URL"
	}
	return c
}

// lockRights serialises grants of several core migrate, whose changes of the catalog collide. It reports
// whether the role owns the tables.
const lockRights = `
	SELECT pg_has_role(relowner, 'USAGE') FROM pg_class, pg_advisory_xact_lock('audit_log'::regclass::int, 0)
	WHERE oid = 'audit_log'::regclass`

// selectGrants selects the statements by which a role has the rights of core serve and no others; none
// for a role that acts as the owner. Default privileges are for tables of later migrations, to which
// triggers write at once for cores of the release before.
const selectGrants = `
	WITH log AS (
		SELECT relowner AS owner, relnamespace AS schema FROM pg_class WHERE oid = 'audit_log'::regclass
	), wanted (prefix, object, rights, acl) AS (
		SELECT '', 'DATABASE ' || quote_ident(datname), 'CONNECT', datacl FROM pg_database WHERE datname = current_database()
		UNION ALL
		SELECT '', 'SCHEMA ' || quote_ident(nspname), 'USAGE', nspacl FROM pg_namespace, log WHERE oid = schema
		UNION ALL
		SELECT '', CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || oid::regclass, CASE
			WHEN relkind = 'S' THEN 'SELECT, USAGE'
			WHEN relname = 'audit_log' THEN 'INSERT, SELECT'
			WHEN relname = '` + versionTable + `' THEN 'SELECT'
			ELSE 'DELETE, INSERT, SELECT, UPDATE' END, relacl
		FROM pg_class, log WHERE relnamespace = schema AND relowner = owner AND relkind IN ('r', 'S')
		UNION ALL
		SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s ', schema::regnamespace), 'TABLES', 'DELETE, INSERT, SELECT, UPDATE', (
			SELECT defaclacl FROM pg_default_acl WHERE defaclnamespace = schema AND defaclrole = quote_ident(current_user)::regrole AND defaclobjtype = 'r')
		FROM log
	)
	SELECT format('%1$sREVOKE ALL ON %2$s FROM %4$I; %1$sGRANT %3$s ON %2$s TO %4$I', prefix, object, rights, $1::name)
	FROM log, wanted
	WHERE NOT pg_has_role($1::name, owner, 'MEMBER') AND rights IS DISTINCT FROM (
		SELECT string_agg(privilege_type || CASE WHEN is_grantable THEN '*' ELSE '' END, ', ' ORDER BY privilege_type)
		FROM aclexplode(acl) WHERE grantee = quote_ident($1)::regrole)`

// GrantRights grants the roles of a configuration's URLs what core serve needs, and revokes everything else.
// It returns those whose rights have changed. The database is open with AsOwner.
func (db *DB) GrantRights(ctx context.Context, cfg Config) (changed []string, err error) {
	if cfg.OwnerURL == "" {
		return nil, nil
	}
	for _, url := range []string{cfg.URL, cfg.ListenURL, cfg.LibraryURL} {
		service, err := pgx.ParseConfig(url)
		if url == "" || err != nil || slices.Contains(changed, service.User) {
			continue // core serve reports the error
		}
		var grants []string
		if err := db.writes.transact(ctx, func(tx pgx.Tx) (err error) {
			grants, err = grantRights(ctx, tx, service.User)
			return err
		}); err != nil {
			return changed, failure("grant rights to the role "+service.User, err)
		}
		if len(grants) > 0 {
			changed = append(changed, service.User)
		}
	}
	return changed, nil
}

// grantRights returns the statements that it has run.
func grantRights(ctx context.Context, tx pgx.Tx, role string) (grants []string, err error) {
	var owns bool
	if err := tx.QueryRow(ctx, lockRights).Scan(&owns); err != nil {
		return nil, err
	}
	if !owns {
		return nil, config.Errorf("OWNER_DATABASE_URL", "has a role that does not own the tables")
	}
	rows, _ := tx.Query(ctx, selectGrants, role) // CollectRows reports the error
	if grants, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(grants) == 0 {
		return nil, err
	}
	_, err = tx.Exec(ctx, strings.Join(grants, ";"))
	return grants, err
}

// hasOwnerRights is whether the role may change the schema or entries of the audit log, in a query of its row in pg_class.
const hasOwnerRights = `has_schema_privilege(relnamespace, 'CREATE') OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER')`

const selectOwnerRights = `
	SELECT current_user, ` + hasOwnerRights + `
	FROM pg_class WHERE oid = to_regclass('audit_log')`

// rightsPause is the time between two attempts to read rights.
const rightsPause = time.Second

// LogOwnerRights logs once, as soon as there is a schema, if the role may do more than GrantRights grants.
func (db *DB) LogOwnerRights(ctx context.Context, log *slog.Logger) {
	for {
		var role string
		var excessive bool
		err := db.reads.QueryRow(ctx, selectOwnerRights).Scan(&role, &excessive)
		if excessive {
			log.InfoContext(ctx, "the database's role may change the schema and the audit log; with CORE_OWNER_DATABASE_URL core migrate gives another role less",
				"role", role)
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rightsPause):
		}
	}
}
