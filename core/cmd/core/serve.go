package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/edgeapi"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/pages"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tracing"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// serveCommand opens the parts of core from the bottom up, serves until ctx ends, and closes
// them in reverse order.
func serveCommand(ctx context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("core serve"), ""); err != nil {
		return err
	}
	// Core has a few megabytes of live memory, so the garbage collector would run many times
	// a second. The ballast raises its target; as its pages are never touched, it takes no
	// physical memory.
	ballast := make([]byte, 32<<20)
	defer runtime.KeepAlive(ballast)

	cfg, err := config.Read[settings](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	cfg.Mail.URL = cfg.mailURL()
	log := logging.New(i.Stdout, cfg.Log)

	// Dependencies.
	traces, err := tracing.New(ctx, "core", cfg.Traces, log)
	if err != nil {
		return config.In(prefix+"TRACES_", err)
	}
	defer traces.Close()
	files, err := objectStore(cfg.Objects)
	if err != nil {
		return err
	}
	cfg.Tracer = traces.Provider()
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return config.In(prefix, err)
	}
	defer db.Close()

	// Services.
	passwords := core.NewPasswords(cfg.Site.Name)
	logins := core.NewLogins(db, passwords, cfg.Logins, time.Now)
	services, err := newServices(cfg, db, files, passwords, logins, log)
	if err != nil {
		return err
	}
	feed := core.NewFeed(db, log)
	db.OnChange(feed.Committed)
	purger, err := newCDNPurger(cfg, db, feed, log)
	if err != nil {
		return err
	}
	outbox, err := newOutbox(cfg, db, log)
	if err != nil {
		return err
	}

	// Listeners.
	publicTLS, edgesTLS, err := loadCertificates(cfg, log)
	if err != nil {
		return err
	}
	options := httpserver.Options{Log: log, LogSampleRate: cfg.Log.SampleRate, Limits: cfg.Limits, Proxies: clientip.New(cfg.Proxies, log), Tracer: traces}
	publicOptions := options
	publicOptions.ErrorFormat, publicOptions.IsUnlimited = yggdrasil.FormatError, yggproto.IsGameServer
	public, err := api.New(publicOptions, services, cfg.API, cmp.Or(cfg.Textures.Bytes, blobstore.MaxSize), time.Now)
	if err != nil {
		return config.In(prefix, err)
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	var purges edgeapi.Purges // nil on a site without a CDN
	if purger != nil {
		purges = purger
	}
	edgeAPI, err := edgeapi.New(streams, options, core.NewMappings(db), feed, purges, cfg.EdgeSecrets)
	if err != nil {
		return config.In(prefix, err)
	}
	launchers, err := addLaunchers(cfg, db, feed, services, logins, public, options)
	if err != nil {
		return err
	}
	consoleTasks, err := addConsole(cfg, services, public, options)
	if err != nil {
		return err
	}
	addPages(cfg, services, db, feed, public, options)
	registry := prometheus.NewRegistry()
	db.Expose(registry)
	if purger != nil {
		purger.Expose(registry)
	}
	outbox.Expose(registry)
	readLastBackup := core.ExposeLastBackup(registry, db, log)
	publicTLS.RegisterMetrics(registry, "public")
	edgesTLS.RegisterMetrics(registry, "edges")
	checks := dependencies(db, files)
	health := httpserver.NewHealth(checks[:len(checks)-1]...) // core is ready without LISTEN
	listeners, err := httpserver.Open(ctx, log, checks,
		httpserver.Listener{Name: "public", Setting: prefix + "LISTEN", Address: cfg.Listen, Server: public.HTTP(), TLS: publicTLS.ServerConfig(), PeerLimits: options.PeerLimits()},
		httpserver.Listener{Name: "edges", Setting: prefix + "EDGES_LISTEN", Address: cfg.EdgesListen, Server: edgeAPI.HTTP(), TLS: edgesTLS.ServerConfig()},
		httpserver.Listener{Name: "operators", Setting: prefix + "OPS_LISTEN", Address: cfg.OpsListen, Server: httpserver.OperatorServer(options, health, registry, cfg.OpsPprof)},
	)
	if err != nil {
		return err
	}
	defer listeners.Close()
	if launchers.missing != "" { // which may not be meant
		log.InfoContext(ctx, "launchers and game servers are not served", "missing", launchers.missing)
	}
	if err := addDemo(ctx, cfg, db, files, passwords, logins, log); err != nil {
		return err
	}

	tasks := []func(context.Context){
		feed.Run,
		func(ctx context.Context) { db.Listen(ctx, log, feed.Notify) },
		func(ctx context.Context) { db.LogOwnerRights(ctx, log) },
		outbox.Run,
		services.Pages.Run,
		readLastBackup,
		trimmer(log, "sessions", services.Sessions.Trim),
		trimmer(log, "changes", feed.Trim),
		trimmer(log, "e-mail links", outbox.Trim),
		trimmer(log, "login failures", logins.Trim),
		trimmer(log, "deleted players", services.Players.Trim),
		trimmer(log, "notifications", services.Notifications.Trim),
		trimmer(log, "score changes", services.Scores.Trim),
		trimmer(log, "texture changes", db.TrimTextureChanges),
		trimmer(log, "reports", db.TrimReports),
	}
	tasks = append(tasks, launchers.tasks(log)...)
	tasks = append(tasks, consoleTasks...)
	if purger != nil {
		tasks = append(tasks, purger.Run, trimmer(log, "streams to edges", purger.Trim))
	}
	stop := cli.Background(ctx, tasks...)
	defer stop()
	return listeners.Run(ctx, log, health, cfg.Drain, endStreams)
}

// dependencies returns the checks of what core needs, which run before it listens. All but the
// last one are checks of readiness, too.
//
// An error that only another setting can correct stops core. Other errors are logged, as the
// dependency may become available later, even the schema: core may start before core migrate
// has created it and prepared the texture store. A store that is not prepared although the
// schema exists is the wrong one.
func dependencies(db *postgres.DB, files *blobstore.Store) []httpserver.Check {
	store := func(ctx context.Context) error {
		err := files.Ready(ctx)
		if errors.Is(err, blobstore.ErrNotInitialized) && db.Check(ctx) == nil {
			return config.Final(err)
		}
		return err
	}
	checks := []httpserver.Check{
		{Name: "postgres", Probe: settingProbe("", db.Check)},
		{Name: "objects", Probe: settingProbe("OBJECTS_", store), Optional: true},
	}
	if db.HasLibrary() {
		checks = append(checks, httpserver.Check{Name: "postgres for lists", Probe: settingProbe("", db.CheckLibrary), Optional: true})
	}
	return append(checks, httpserver.Check{Name: "postgres for LISTEN", Probe: settingProbe("", db.CheckListen)})
}

// settingProbe returns a probe with errors that begin with the full name of a setting and end
// with an example of its value.
func settingProbe(part string, probe func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := probe(ctx); err != nil {
			return config.Explain[settings](prefix, config.In(prefix+part, err))
		}
		return nil
	}
}

// loadCertificates returns the certificates of the two listeners, nil for one without TLS.
func loadCertificates(cfg settings, log *slog.Logger) (public, edges *tlsreload.Certificate, err error) {
	if public, err = tlsreload.Load(cfg.TLSCert, cfg.TLSKey, log); err != nil {
		return nil, nil, config.In(prefix+"TLS_", err)
	}
	if edges, err = tlsreload.Load(cfg.EdgesTLSCert, cfg.EdgesTLSKey, log); err != nil {
		return nil, nil, config.In(prefix+"EDGES_TLS_", err)
	}
	return public, edges, nil
}

// addConsole mounts the web console on the public listener, if the site has it. It returns what runs
// in the background.
func addConsole(cfg settings, services api.Services, to *api.Server, options httpserver.Options) (tasks []func(context.Context), err error) {
	if cfg.Console == "off" {
		return nil, nil
	}
	site := console.Site{Branding: cfg.Site, LogoPath: to.LogoPath(), Texts: services.Pages.Texts, PicturesURL: cfg.picturesURL(), LaunchersPath: to.LaunchersPath(), UserJSON: api.UserJSON}
	server, err := console.New(options, services.Sessions, site, to.Limiters())
	if err != nil {
		return nil, fmt.Errorf("BUG: the console cannot be served: %w", err)
	}
	to.MountConsole(api.Mount{Root: console.Root, Handler: server.Handler})
	return []func(context.Context){console.Compress}, nil
}

// addPages mounts the pages for visitors on the public listener, if the site has the console, to which they lead.
func addPages(cfg settings, services api.Services, db *postgres.DB, feed *core.Feed, to *api.Server, options httpserver.Options) {
	if cfg.Console == "off" {
		return
	}
	site := pages.Site{
		Branding: cfg.Site, LogoPath: to.LogoPath(), Logo: services.Site.Logo,
		PublicURL: strings.TrimRight(cfg.PublicURL, "/"), PicturesURL: cfg.picturesURL(), LaunchersPath: to.LaunchersPath(), Files: console.Base(), Texts: services.Pages.Texts, IsOpen: cfg.API.Registration != "closed",
	}
	server := pages.New(options, core.NewShowcase(db), feed, cfg.Pages, site, to.Limiters(), time.Now)
	to.MountPages(api.Pages{Roots: pages.Roots(), Handler: server.Handler})
}

// newServices returns the services behind the public API.
func newServices(
	cfg settings, db *postgres.DB, files *blobstore.Store, passwords *core.Passwords, logins *core.Logins, log *slog.Logger,
) (api.Services, error) {
	names, err := playerNames(cfg.Players)
	if err != nil {
		return api.Services{}, err
	}
	logo, err := cfg.Site.ReadLogo()
	if err != nil {
		return api.Services{}, config.In(prefix+"SITE_", err)
	}
	texts, err := core.NewSitePages(cfg.Site.PagesDir, log)
	if err != nil {
		return api.Services{}, config.In(prefix+"SITE_", err)
	}
	tokens := core.NewTokens(cfg.TokenKeys, cfg.TokenIssuer, cfg.TokenTTL, time.Now)
	var links *core.Links
	if cfg.sendsMail() {
		links = core.NewLinks(db, passwords, names, cfg.Mail, cfg.Scores, texts, time.Now)
	}
	return api.Services{
		Links: links, Pages: texts,
		Site: core.Site{
			Branding: cfg.Site, Logo: logo, Players: cfg.Players, Textures: cfg.Textures.Limits, Quotas: cfg.Quotas, Scores: cfg.Scores, TexturesURL: strings.TrimRight(cfg.TexturesURL, "/"),
			IsHidden: cfg.Pages.Indexing == "off",
		},
		Users:         core.NewUsers(db, passwords, names, cfg.Scores, texts, cfg.sendsMail()),
		Accounts:      core.NewAccounts(db, logins, passwords, cfg.sendsMail()),
		Sessions:      core.NewSessions(db, logins, tokens, cfg.SessionLimits, time.Now),
		UserSessions:  core.NewUserSessions(db, cfg.Yggdrasil.LauncherLimits),
		Players:       core.NewPlayers(db, names, cfg.Quotas, cfg.Scores),
		Closets:       core.NewClosets(db, cfg.Quotas, cfg.Scores),
		Textures:      core.NewTextures(db, files, cfg.Textures, cfg.Quotas, cfg.Scores),
		Library:       core.NewLibrary(db),
		Notifications: core.NewNotifications(db, cfg.NotificationRetention, time.Now),
		Scores:        core.NewScores(db, cfg.Scores, time.Now),
		Reports:       core.NewReports(db),
		Audit:         core.NewAudit(db),
		Counts:        db.Counts,
		Check:         db.Check,
	}, nil
}

// newCDNPurger returns the CDN purger, nil without a webhook.
func newCDNPurger(cfg settings, db *postgres.DB, feed *core.Feed, log *slog.Logger) (*cdnpurge.Purger, error) {
	if cfg.Purge.URL == "" {
		return nil, nil //nolint:nilnil // nil: no CDN
	}
	webhook, err := cdnpurge.New(cfg.Purge)
	if err != nil {
		return nil, config.In(prefix+"PURGE_", err)
	}
	return cdnpurge.NewPurger(db, webhook, feed, cfg.Purge.Timeout, log), nil
}

// newOutbox returns the outbox of e-mails, nil without a mail server.
func newOutbox(cfg settings, db *postgres.DB, log *slog.Logger) (*core.Outbox, error) {
	if !cfg.sendsMail() {
		return nil, nil //nolint:nilnil // nil: no e-mail
	}
	client, err := mail.New(cfg.SMTP)
	if err != nil {
		return nil, config.In(prefix+"SMTP_", err)
	}
	return core.NewOutbox(db, mail.NewSender(client, cfg.Site.Name, cfg.Mail.URL), cfg.Mail, cfg.SMTP.Timeout, log, time.Now), nil
}

const (
	trimInterval = 10 * time.Minute
	trimTimeout  = 5 * time.Minute
)

// trimmer returns a function that deletes obsolete rows at intervals until its context ends.
// Obsolete rows only take space, so errors are logged.
func trimmer(log *slog.Logger, what string, trim func(context.Context) (int, error)) func(context.Context) {
	return func(ctx context.Context) {
		ticker := time.NewTicker(trimInterval)
		defer ticker.Stop()
		for {
			trimCtx, cancel := context.WithTimeout(ctx, trimTimeout)
			switch n, err := trim(trimCtx); {
			case ctx.Err() != nil:
			case err != nil:
				log.WarnContext(ctx, "obsolete rows cannot be deleted", "of", what, "error", err)
			case n > 0:
				log.InfoContext(ctx, "obsolete rows deleted", "of", what, "count", n)
			}
			cancel()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}
