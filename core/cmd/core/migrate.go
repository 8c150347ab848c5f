package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// migrateConfig is the settings of core migrate.
type migrateConfig struct {
	postgres.Config
	Objects blobstore.Config `envPrefix:"OBJECTS_"`
}

// migrateCommand migrates the schema and prepares the texture store.
//
// A store gets its marker only while there are no textures, or with -adopt-store: otherwise an
// unmounted disk or a mistyped bucket would become the store, and every file would be missing.
func migrateCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core migrate")
	adopt := flags.Bool("adopt-store", false, "add the marker to the texture store although textures exist, after their files were moved there without it")
	if _, err := i.ParseArg(flags, ""); err != nil {
		return err
	}
	cfg, err := config.Read[migrateConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, cfg.AsOwner())
	if err != nil {
		return config.In(prefix, err)
	}
	defer db.Close()
	files, err := objectStore(cfg.Objects)
	if err != nil {
		return err
	}

	if err := migrateSchema(ctx, db, cfg.Config, i.Stdout); err != nil {
		return config.In(prefix, err)
	}

	filled, err := db.FillKeys(ctx)
	if err != nil {
		return err
	}
	if filled > 0 {
		fmt.Fprintf(i.Stdout, "search keys: made %d that were missing\n", filled)
	}

	changed, equal, err := db.RekeyEmails(ctx)
	if err != nil {
		return err
	}
	if changed > 0 {
		fmt.Fprintf(i.Stdout, "e-mail addresses: made %d keys anew\n", changed)
	}
	for _, user := range equal {
		fmt.Fprintf(i.Stdout, "e-mail addresses: user %d keeps %s, which equals the address of another user; both can sign in, each as the address was written\n", user.ID, user.Email)
	}

	cleared, err := db.ClearLostAvatars(ctx)
	if err != nil {
		return err
	}
	if cleared > 0 {
		fmt.Fprintf(i.Stdout, "avatars: cleared %d whose user may no longer use the texture\n", cleared)
	}

	hasTextures, err := db.HasTextures(ctx)
	if err != nil {
		return err
	}
	if hasTextures && !*adopt {
		switch err := files.Check(ctx); {
		case errors.Is(err, blobstore.ErrNotInitialized):
			return config.Errorf("CORE_OBJECTS_URL", "is not the store of the textures that the database has; name that one, or run core migrate -adopt-store if their files were moved there (%w)", fault.CauseOf(err))
		case err != nil:
			return config.In(prefix+"OBJECTS_", files.Explain(err))
		}
	} else if err := files.Init(ctx); err != nil {
		return config.In(prefix+"OBJECTS_", files.Explain(err))
	}
	fmt.Fprintln(i.Stdout, "texture store: ready")
	return nil
}

// migrateSchema migrates the schema and grants the roles of core serve their rights on it.
func migrateSchema(ctx context.Context, db *postgres.DB, cfg postgres.Config, out io.Writer) error {
	before, after, err := db.Migrate(ctx, func(text string) { fmt.Fprintf(out, "schema: %s\n", text) })
	if err != nil {
		return err
	}
	if before == after {
		fmt.Fprintf(out, "schema: version %d, nothing to do\n", after)
	} else {
		fmt.Fprintf(out, "schema: migrated from version %d to %d\n", before, after)
	}
	roles, err := db.GrantRights(ctx, cfg)
	for _, role := range roles {
		fmt.Fprintf(out, "rights: granted to the role %s what core serve needs, and nothing else\n", role)
	}
	return err
}
