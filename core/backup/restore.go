package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobcopy"
	"github.com/veneer-skins/veneer/shared/skin"
)

// The transaction of a restore.
const (
	beginRestore = "BEGIN; SET client_min_messages = warning;\n"
	// dropSite drops the schema with Veneer's tables. A dump makes its schema, but for public, which
	// gets the owner and the rights of a new database's.
	dropSite = `DO $$
DECLARE
  site name := (SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE pg_class.oid = 'schema_version'::regclass);
BEGIN
  EXECUTE format('DROP SCHEMA %I CASCADE', site);
  IF site = 'public' THEN
    CREATE SCHEMA public;
    ALTER SCHEMA public OWNER TO pg_database_owner;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
  END IF;
END
$$;
`
	afterDump  = "\nRESET search_path;\n" // which the dump empties
	endRestore = "\nCOMMIT;\n"
)

// Restore restores a backup into the database of an owner's URL, and into a texture store; an empty name
// is the newest backup's. All rows come in one transaction, which ends sessions and sign-ins as well.
// Without mayReplace the database must be empty.
func (d *Directory) Restore(ctx context.Context, database string, db *postgres.DB, files *blobstore.Store, name string, mayReplace bool) (Report, error) {
	isEmpty, err := db.IsEmpty(ctx)
	if err != nil {
		return Report{}, err
	}
	if !isEmpty && !mayReplace {
		return Report{}, errors.New("the database has a site already: restore into an empty one, or replace what it has with -replace")
	}
	unlock, err := d.lock() // a backup would remove old ones
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	r, l, err := d.verified(ctx, name)
	if err != nil {
		return r, err
	}
	if err := files.Init(ctx); err != nil {
		return r, err
	}
	var hashes []skin.Hash
	for _, entry := range l.Files {
		if !entry.IsLost {
			hashes = append(hashes, entry.Hash)
		}
	}
	var copied list
	if copied.Files, r.Copied, err = blobcopy.Copy(ctx, d.files, files, hashes); err != nil {
		return r, err
	}
	if lost := copied.lost(); lost > 0 {
		return r, fmt.Errorf("%d texture files of the backup %s are damaged since they were verified", lost, r.Name)
	}
	return r, restoreRows(ctx, database, d.path(r.Name, dumpSuffix), !isEmpty)
}

// restoreRows runs a dump and what must follow it in one transaction. If the dump ends too early, there
// is no COMMIT.
func restoreRows(ctx context.Context, database, dump string, replace bool) error {
	begin := beginRestore
	if replace {
		begin += dropSite
	}
	script, rows := io.Pipe()
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(rows, begin)
		if err == nil {
			err = run(ctx, "", nil, rows, "pg_restore", "--no-owner", "--no-privileges", "--file=-", dump)
		}
		if err == nil {
			_, err = io.WriteString(rows, afterDump+postgres.Restored+endRestore)
		}
		_ = rows.CloseWithError(err)
		written <- err
	}()
	err := run(ctx, database, script, nil, "psql", "--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1")
	_ = script.Close()
	if dumpErr := <-written; err == nil {
		err = dumpErr
	}
	return err
}
