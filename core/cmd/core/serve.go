package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/edgeapi"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// serveCommand opens what core stands on, builds it from the bottom up and
// serves until told to stop.
func serveCommand(ctx context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("core serve"), ""); err != nil {
		return err
	}
	// Core keeps a few megabytes, so Go would collect garbage many times a second, for
	// memory that nobody misses. This counts as kept, but since nobody touches it, it
	// takes no memory.
	ballast := make([]byte, 32<<20)
	defer runtime.KeepAlive(ballast)

	config, err := config.Read[settings](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := config.check(); err != nil {
		return err
	}
	log, err := logging.New(i.Stdout, config.Log)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	traces, err := tracing.New(ctx, "core", config.Traces, log)
	if err != nil {
		return fmt.Errorf("%sTRACES_%w", prefix, err)
	}
	defer traces.Close()
	files, err := objectStore(config.Objects)
	if err != nil {
		return err
	}
	config.Tracer = traces.Provider()
	db, err := postgres.Open(ctx, config.Config)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	defer db.Close()

	passwords := core.NewPasswords()
	logins := core.NewLogins(db, passwords, config.Logins, time.Now)
	parts, err := newServices(config, db, files, passwords, logins)
	if err != nil {
		return err
	}
	feed := core.NewFeed(db, log)
	db.OnChange(feed.Notify)

	options := httpserver.Options{Log: log, LogSampleRate: config.Log.SampleRate, Limits: config.Limits, Proxies: clientip.New(config.Proxies, log), Tracer: traces}
	public, err := api.New(options, parts, config.API, cmp.Or(config.Textures.Bytes, blobstore.MaxSize), time.Now)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	purger, err := newPurger(config, db, feed, log)
	if err != nil {
		return err
	}
	outbox, err := newOutbox(config, db, log)
	if err != nil {
		return err
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	mappings := core.NewMappings(db)
	var purges edgeapi.Purges // stays nil without a CDN
	if purger != nil {
		purges = purger
	}
	edgeAPI, err := edgeapi.New(streams, options, mappings, feed, purges, config.EdgeSecrets)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	publicTLS, edgesTLS, err := loadCertificates(config, log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	db.Expose(registry)
	if purger != nil {
		purger.Expose(registry)
	}
	outbox.Expose(registry)
	publicTLS.RegisterMetrics(registry, "public")
	edgesTLS.RegisterMetrics(registry, "edges")
	checks := dependencies(db, files)
	health := httpserver.NewHealth(checks[:len(checks)-1]...) // core answers without LISTEN
	listeners, err := httpserver.Open(ctx, log, checks,
		httpserver.Listener{Name: "public", Setting: prefix + "LISTEN", Address: config.Listen, Server: public.HTTP(), TLS: publicTLS.ServerConfig(), PeerLimits: options.PeerLimits()},
		httpserver.Listener{Name: "edges", Setting: prefix + "EDGES_LISTEN", Address: config.EdgesListen, Server: edgeAPI.HTTP(), TLS: edgesTLS.ServerConfig()},
		httpserver.Listener{Name: "operators", Setting: prefix + "OPS_LISTEN", Address: config.OpsListen, Server: httpserver.OperatorServer(options, health, registry, config.OpsPprof)},
	)
	if err != nil {
		return err
	}
	defer listeners.Close()
	if err := addDemo(ctx, config, db, files, passwords, logins, log); err != nil {
		return err
	}

	var background sync.WaitGroup
	backgroundCtx, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer background.Wait()
	defer stopBackground()
	background.Go(func() { feed.Run(backgroundCtx) })
	background.Go(func() { db.Listen(backgroundCtx, log, feed.Notify) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "sessions", parts.Sessions.Trim) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "changes", feed.Trim) })
	if purger != nil {
		background.Go(func() { purger.Run(backgroundCtx) })
		background.Go(func() { trimPeriodically(backgroundCtx, log, "streams to edges", purger.Trim) })
	}
	background.Go(func() { outbox.Run(backgroundCtx) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "what e-mails stand for", outbox.Trim) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "login failures", logins.Trim) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "notifications", parts.Notifications.Trim) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "changes of scores", parts.Ledger.Trim) })
	background.Go(func() { trimPeriodically(backgroundCtx, log, "changes of textures", db.TrimTextureChanges) })

	return listeners.Run(ctx, log, health, config.Drain, endStreams)
}

// dependencies returns what core needs: first what readiness is about.
//
// What is wrong with the setting that leads there stops core at its start. All else may
// come later, the schema too: core starts beside the program that migrates it, which
// prepares the texture store next. A store that is not prepared though the schema is there
// is another one.
func dependencies(db *postgres.DB, files *blobstore.Store) []httpserver.Check {
	withSetting := func(part string, probe func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := probe(ctx); err != nil {
				return config.Explain[settings](prefix, fmt.Errorf("%s%s%w", prefix, part, err))
			}
			return nil
		}
	}
	store := func(ctx context.Context) error {
		err := files.Ready(ctx)
		if errors.Is(err, blobstore.ErrNotInitialized) && db.Check(ctx) == nil {
			return config.SettingError{Cause: err}
		}
		return err
	}
	checks := []httpserver.Check{
		{Name: "postgres", Probe: withSetting("", db.Check)},
		{Name: "objects", Probe: withSetting("OBJECTS_", store), Optional: true},
	}
	if db.HasLibrary() {
		checks = append(checks, httpserver.Check{Name: "postgres for lists", Probe: withSetting("", db.CheckLibrary), Optional: true})
	}
	return append(checks, httpserver.Check{Name: "postgres for LISTEN", Probe: withSetting("", db.CheckListen)})
}

// loadCertificates returns how the two listeners prove who they are, nil for one that does not.
func loadCertificates(config settings, log *slog.Logger) (public, edgeAPI *tlsreload.Certificate, err error) {
	if public, err = tlsreload.Load(config.TLSCert, config.TLSKey, log); err != nil {
		return nil, nil, fmt.Errorf("%sTLS_%w", prefix, err)
	}
	if edgeAPI, err = tlsreload.Load(config.EdgesTLSCert, config.EdgesTLSKey, log); err != nil {
		return nil, nil, fmt.Errorf("%sEDGES_TLS_%w", prefix, err)
	}
	return public, edgeAPI, nil
}

// newServices builds what the public door opens to.
func newServices(c settings, db *postgres.DB, files *blobstore.Store, passwords *core.Passwords, logins *core.Logins) (api.Services, error) {
	names, err := playerNames(c.Players)
	if err != nil {
		return api.Services{}, err
	}
	tokens := core.NewTokens(c.TokenKeys, c.TokenIssuer, c.TokenTTL, time.Now)
	var links *core.Links
	if c.sendsMail() {
		links = core.NewLinks(db, passwords, names, c.Mail, c.Scores, time.Now)
	}
	return api.Services{
		Links:         links,
		Users:         core.NewUsers(db, passwords, names, c.Scores, c.sendsMail()),
		Accounts:      core.NewAccounts(db, logins, passwords, c.sendsMail()),
		Sessions:      core.NewSessions(db, logins, tokens, c.SessionLimits, time.Now),
		Players:       core.NewPlayers(db, names, c.Quotas, c.Scores),
		Closets:       core.NewClosets(db, c.Quotas, c.Scores),
		Textures:      core.NewTextures(db, files, c.Textures, c.Quotas, c.Scores),
		Library:       core.NewLibrary(db),
		Notifications: core.NewNotifications(db, c.NotificationRetention, time.Now),
		Ledger:        core.NewLedger(db, c.Scores, time.Now),
		Reports:       core.NewReports(db),
		Audit:         core.NewAudit(db),
		Check:         db.Check,
	}, nil
}

// newPurger returns the purges of a feed, nil without a hook.
func newPurger(c settings, db *postgres.DB, feed *core.Feed, log *slog.Logger) (*cdnpurge.Purger, error) {
	if c.Purge.URL == "" {
		return nil, nil //nolint:nilnil // stands for a site without content delivery networks
	}
	webhook, err := cdnpurge.New(c.Purge)
	if err != nil {
		return nil, fmt.Errorf("%sPURGE_%w", prefix, err)
	}
	return cdnpurge.NewPurger(db, webhook, feed, c.Purge.Timeout, log), nil
}

// newOutbox returns what sends e-mail, nil without a mail server.
func newOutbox(c settings, db *postgres.DB, log *slog.Logger) (*core.Outbox, error) {
	if !c.sendsMail() {
		return nil, nil //nolint:nilnil // stands for a site that sends no e-mail
	}
	client, err := mail.New(c.SMTP)
	if err != nil {
		return nil, fmt.Errorf("%sSMTP_%w", prefix, err)
	}
	return core.NewOutbox(db, mail.NewSender(client, c.Mail), c.Mail, c.SMTP.Timeout, log, time.Now), nil
}

// Times of trimming.
const (
	trimInterval = 10 * time.Minute
	trimTimeout  = 5 * time.Minute
)

// trimPeriodically deletes now and then what is over. It does no harm, it only takes room.
func trimPeriodically(ctx context.Context, log *slog.Logger, what string, trim func(context.Context) (int, error)) {
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	for {
		trimCtx, cancel := context.WithTimeout(ctx, trimTimeout)
		switch n, err := trim(trimCtx); {
		case ctx.Err() != nil:
		case err != nil:
			log.WarnContext(ctx, "old rows cannot be trimmed", "of", what, "error", err)
		case n > 0:
			log.InfoContext(ctx, "old rows trimmed", "of", what, "count", n)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
