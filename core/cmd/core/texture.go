package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

// textureAddConfig is what the command reads.
type textureAddConfig struct {
	postgres.Config
	Objects  blobstore.Config   `envPrefix:"OBJECTS_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
}

// textureAddCommand adds a texture for a user, as if they had uploaded it.
func textureAddCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core texture add")
	uploader := flags.String("uploader", "", "e-mail address of the user it is added for (required)")
	title := flags.String("name", "", "the texture's name; the file's if not given")
	kind := flags.String("type", "skin", "steve, alex, cape, or skin: told by the pixels")
	private := flags.Bool("private", false, "keep it out of the library")
	path, err := i.ParseArg(flags, "FILE")
	if err != nil {
		return err
	}
	if *uploader == "" {
		return fmt.Errorf("-uploader must be given")
	}
	if *title == "" {
		*title = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	config, err := config.Read[textureAddConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files, err := objectStore(config.Objects)
	if err != nil {
		return err
	}
	if err := files.Check(ctx); err != nil {
		return err
	}

	db, err := openReady(ctx, config.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	user, err := core.NewUsers(db, nil, nil, core.Scores{}, false).ByEmail(ctx, *uploader)
	if err != nil {
		return err
	}
	// Operators are held to no quota and pay nothing.
	texture, err := core.NewTextures(db, files, config.Textures, core.Quotas{}, core.Scores{}).Upload(ctx, user.ID, core.Upload{
		File: file, Name: *title, Type: *kind, Public: !*private,
	})
	if err != nil {
		return err
	}
	numberChanges(ctx, db)
	fmt.Fprintf(i.Stdout, "texture %d added: %s, type %s, hash %s\n", texture.ID, texture.Name, texture.Type, texture.Hash)
	return nil
}
