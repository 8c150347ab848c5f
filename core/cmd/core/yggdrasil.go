package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// launcherConfig has the settings of the API of launchers.
// Its setting is CORE_YGGDRASIL_CHECK_IP.
type launcherConfig struct {
	KeyFile string `env:"KEY_FILE" example:"/etc/veneer/yggdrasil.pem" help:"PEM file of the RSA key that signs what players wear, as core keys yggdrasil makes it; the same at every core"`
	core.LauncherLimits
	core.ProfileLimits
	core.UnknownLimits
	CheckIP bool `env:"CHECK_IP" envDefault:"false" help:"tell a game server that sends the address of its client only of players that joined from there; this fails with VPNs and in local networks"`
	yggdrasil.Config
}

// launchers is the API of launchers. tokens and joins are nil on a site without it.
type launchers struct {
	tokens *core.LauncherTokens
	joins  *core.JoinServer
	// missing is the setting that is needed; empty if it is switched off.
	missing string
}

// tasks returns what runs in the background.
func (l launchers) tasks(log *slog.Logger) []func(context.Context) {
	if l.tokens == nil {
		return nil
	}
	return []func(context.Context){trimmer(log, "launchers' tokens", l.tokens.Trim), trimmer(log, "joins of game servers", l.joins.Trim)}
}

// addLaunchers mounts the API of launchers on the public API, if the site has it.
func addLaunchers(
	cfg settings, db *postgres.DB, feed *core.Feed, services api.Services, logins *core.Logins, to *api.Server, options httpserver.Options,
) (launchers, error) {
	if cfg.Launchers == "off" {
		return launchers{}, nil
	}
	key, err := readProfileKey(cfg.Yggdrasil.KeyFile)
	switch {
	case err != nil:
		return launchers{}, config.In(prefix+"YGGDRASIL_", err)
	case cfg.PublicURL == "":
		return launchers{missing: prefix + "PUBLIC_URL"}, nil
	case key == nil:
		return launchers{missing: prefix + "YGGDRASIL_KEY_FILE"}, nil
	}
	texturesURL := cmp.Or(cfg.TexturesURL, cfg.PublicURL)
	parsed, err := url.Parse(texturesURL)
	if err != nil {
		return launchers{}, config.Errorf("CORE_TEXTURES_URL", "%w", err)
	}
	unknown := core.NewUnknownLimit(cfg.Yggdrasil.UnknownLimits)
	profiles, err := core.NewProfiles(db, unknown, feed, key, cfg.Yggdrasil.ProfileLimits, texturesURL, time.Now)
	if err != nil {
		return launchers{}, config.Errorf("CORE_YGGDRASIL_KEY_FILE", "cannot be used: %w", err)
	}
	l := launchers{tokens: core.NewLauncherTokens(db, unknown, logins, cfg.Yggdrasil.LauncherLimits)}
	l.joins = core.NewJoinServer(db, l.tokens, cfg.Yggdrasil.CheckIP)
	server, err := yggdrasil.New(options, yggdrasil.Services{
		Tokens: l.tokens, Joins: l.joins, Profiles: profiles,
		Certificates: core.NewPlayerCertificates(key, cfg.Yggdrasil.ProfileKeys, time.Now),
		Players:      services.Players,
		Uploads:      core.NewLauncherUploads(services.Textures, services.Closets, services.Players),
	}, cfg.Yggdrasil.Config, yggdrasil.Site{
		Name: cfg.Site.Name, Homepage: cmp.Or(cfg.Mail.URL, cfg.PublicURL), TexturesHost: parsed.Hostname(),
	}, to.Limiters(), cmp.Or(cfg.Textures.Bytes, blobstore.MaxSize))
	if err != nil {
		return launchers{}, config.In(prefix+"YGGDRASIL_", err)
	}
	to.MountLaunchers(api.Mount{Root: yggdrasil.Root, Handler: server.Handler})
	return l, nil
}

// readProfileKey returns the key in a file, nil without a file or with an empty one: scripts make
// that where they cannot make a key.
func readProfileKey(path string) (*core.ProfileKey, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // see above
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, config.Errorf("KEY_FILE", "is %q, which cannot be read: %w", path, errors.Unwrap(err))
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	key, err := core.ParseProfileKey(content)
	if err != nil {
		return nil, config.Errorf("KEY_FILE", "is %q, which %w", path, err)
	}
	return key, nil
}
