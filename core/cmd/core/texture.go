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

// textureAddConfig is the settings of core texture add.
type textureAddConfig struct {
	postgres.Config
	Objects  blobstore.Config   `envPrefix:"OBJECTS_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
}

// textureAddCommand uploads a texture on behalf of a user.
func textureAddCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core texture add")
	uploader := flags.String("uploader", "", "e-mail address of the uploader (required)")
	title := flags.String("name", "", "the texture's name (default: the file's name)")
	kind := flags.String("type", "skin", "steve, alex, cape, or skin, which detects the model")
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
	cfg, err := config.Read[textureAddConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files, err := objectStore(cfg.Objects)
	if err != nil {
		return err
	}
	if err := files.Check(ctx); err != nil {
		return err
	}

	return withUser(ctx, cfg.Config, *uploader, func(db *postgres.DB, user core.User) error {
		// Without quotas and scores: an operator is not limited by them.
		textures := core.NewTextures(db, files, cfg.Textures, core.Quotas{}, core.ScorePrices{})
		upload := core.Upload{File: file, Name: *title, Type: *kind, Public: !*private}
		texture, err := textures.Upload(ctx, user.ID, upload)
		if err != nil {
			return err
		}
		numberChanges(ctx, db)
		fmt.Fprintf(i.Stdout, "texture %d added: %s, type %s, hash %s\n", texture.ID, texture.Name, texture.Type, texture.Hash)
		return nil
	})
}
