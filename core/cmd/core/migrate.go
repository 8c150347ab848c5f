package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// migrateConfig is what the command reads.
type migrateConfig struct {
	postgres.Config
	Objects blobstore.Config `envPrefix:"OBJECTS_"`
}

// migrateCommand brings the schema up to date and makes the texture store ready.
//
// A store is marked as ours only while there are no textures, or when told so:
// otherwise an unmounted disk or a mistyped bucket would be taken for the store,
// and every file in it for lost.
func migrateCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core migrate")
	adopt := flags.Bool("adopt-store", false, "mark the texture store as ours although textures exist: after their files were moved there without the marker")
	if _, err := i.ParseArg(flags, ""); err != nil {
		return err
	}
	config, err := config.Read[migrateConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, config.Config)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	defer db.Close()
	files, err := objectStore(config.Objects)
	if err != nil {
		return err
	}

	before, after, err := db.Migrate(ctx, func(text string) { fmt.Fprintf(i.Stdout, "schema: %s\n", text) })
	if err != nil {
		return err
	}
	if before == after {
		fmt.Fprintf(i.Stdout, "schema: version %d, nothing to do\n", after)
	} else {
		fmt.Fprintf(i.Stdout, "schema: migrated from version %d to %d\n", before, after)
	}

	filled, err := db.FillKeys(ctx)
	if err != nil {
		return err
	}
	if filled > 0 {
		fmt.Fprintf(i.Stdout, "search keys: made %d that were missing\n", filled)
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
			return fmt.Errorf("%sOBJECTS_URL is not the store of the textures that the database has; name that one, or run core migrate -adopt-store if their files were moved there (%w)", prefix, fault.CauseOf(err))
		case err != nil:
			return fmt.Errorf("%sOBJECTS_%w", prefix, files.Explain(err))
		}
	} else if err := files.Init(ctx); err != nil {
		return fmt.Errorf("%sOBJECTS_%w", prefix, files.Explain(err))
	}
	fmt.Fprintln(i.Stdout, "texture store: ready")
	return nil
}
