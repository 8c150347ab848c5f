package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// launcherConfig has the settings of the API of launchers.
type launcherConfig struct {
	KeyFile string `env:"KEY_FILE" example:"/etc/veneer/yggdrasil.pem" help:"PEM file of the RSA key that signs what players wear, as core keys yggdrasil makes it; the same at every core"`
	core.LauncherLimits
	CheckIP bool `env:"CHECK_IP" envDefault:"false" help:"tell a game server that sends the address of its client only of players that joined from there; this fails with VPNs and in local networks"`
	yggdrasil.Config
}

// Check returns an error that names an invalid setting.
func (c launcherConfig) Check() error { return cmp.Or(c.LauncherLimits.Check(), c.Config.Check()) }

// launchers is the API of launchers, which a site may not have.
type launchers struct {
	tokens *core.LauncherTokens
	joins  *core.JoinServer
}

// addLaunchers mounts the API of launchers on the public API, and returns nil if the site has none.
func addLaunchers(
	ctx context.Context, cfg settings, db *postgres.DB, services api.Services, logins *core.Logins, to *api.Server, options httpserver.Options,
) (*launchers, error) {
	if cfg.Launchers == "off" {
		return nil, nil //nolint:nilnil // nil: no launchers
	}
	key, err := readProfileKey(cfg.Yggdrasil.KeyFile)
	if err != nil {
		return nil, settingError("YGGDRASIL_", err)
	}
	if key == nil || cfg.PublicURL == "" {
		options.Log.InfoContext(ctx, "launchers and game servers are not served", "missing", cmp.Or(missingSetting(cfg.PublicURL == "", "PUBLIC_URL"), prefix+"YGGDRASIL_KEY_FILE"))
		return nil, nil //nolint:nilnil // nil: no launchers
	}
	texturesURL := cmp.Or(cfg.TexturesURL, cfg.PublicURL)
	parsed, err := url.Parse(texturesURL)
	if err != nil {
		return nil, settingError("TEXTURES_URL ", err)
	}
	profiles, err := core.NewProfiles(db, key, texturesURL, time.Now)
	if err != nil {
		return nil, settingError("YGGDRASIL_", fmt.Errorf("KEY_FILE cannot be used: %w", err))
	}
	l := &launchers{tokens: core.NewLauncherTokens(db, logins, cfg.Yggdrasil.LauncherLimits)}
	l.joins = core.NewJoinServer(db, l.tokens, cfg.Yggdrasil.CheckIP)
	server, err := yggdrasil.New(options, yggdrasil.Services{
		Tokens: l.tokens, Joins: l.joins, Profiles: profiles,
		Certificates: core.NewPlayerCertificates(key, cfg.Yggdrasil.ProfileKeys, time.Now),
		Players:      services.Players,
		Uploads:      core.NewLauncherUploads(services.Textures, services.Closets, services.Players),
	}, cfg.Yggdrasil.Config, yggdrasil.Site{
		Name: cfg.Mail.Site, Homepage: cmp.Or(cfg.Mail.URL, cfg.PublicURL), TexturesHost: parsed.Hostname(),
	}, to.Limiters(), cmp.Or(cfg.Textures.Bytes, blobstore.MaxSize))
	if err != nil {
		return nil, settingError("YGGDRASIL_", err)
	}
	to.MountLaunchers(api.Mount{Root: yggdrasil.Root, Handler: server.Handler})
	return l, nil
}

// missingSetting returns the full name of a setting if it is missing.
func missingSetting(isMissing bool, name string) string {
	if isMissing {
		return prefix + name
	}
	return ""
}

// readProfileKey returns the key in a file, nil without a file or with an empty one: scripts make
// that where they cannot make a key.
func readProfileKey(path string) (*core.ProfileKey, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // see above
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("KEY_FILE is %q, which cannot be read: %w", path, errors.Unwrap(err))
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	key, err := core.ParseProfileKey(content)
	if err != nil {
		return nil, fmt.Errorf("KEY_FILE is %q, which %w", path, err)
	}
	return key, nil
}
