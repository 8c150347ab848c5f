package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// serveCommand opens the parts of an edge from the bottom up, serves until ctx ends, and closes
// them in reverse order.
func serveCommand(ctx context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("edge serve"), ""); err != nil {
		return err
	}
	cfg, err := readSettings(i.Environ)
	if err != nil {
		return err
	}
	log := logging.New(i.Stdout, cfg.Log)

	// Dependencies.
	traces, err := tracing.New(ctx, "edge", cfg.Traces, log)
	if err != nil {
		return config.In(prefix+"TRACES_", err)
	}
	defer traces.Close()
	core, err := origin.NewCore(cfg.Core, log)
	if err != nil {
		return config.In(prefix+"CORE_", err)
	}
	files, err := blobstore.New(cfg.Objects)
	if err != nil {
		return config.In(prefix+"OBJECTS_", err)
	}

	// Pictures.
	resolver := edge.NewResolver(cfg.Mappings, core)
	reducer, err := vips.StartReducer(log)
	if err != nil {
		return err
	}
	defer reducer.Close()
	renderer := render.New(reducer)
	pictures := edge.NewPictures(cfg.Pictures, resolver, origin.NewFiles(files), renderer, artwork.Default())
	defer pictures.Close()
	if err := restore(ctx, pictures, cfg.Pictures, log); err != nil {
		return config.In(prefix, err)
	}

	// Listeners.
	publicTLS, err := tlsreload.Load(cfg.TLSCert, cfg.TLSKey, log)
	if err != nil {
		return config.In(prefix+"TLS_", err)
	}
	options := httpserver.Options{Log: log, LogSampleRate: cfg.Log.SampleRate, Limits: cfg.Limits, Proxies: clientip.New(cfg.Proxies, log), Tracer: traces}
	public, err := api.New(options, pictures, cfg.API)
	if err != nil {
		return config.In(prefix, err)
	}
	registry := prometheus.NewRegistry()
	resolver.Expose(registry)
	pictures.Expose(registry)
	exposeRenderer(registry, renderer)
	publicTLS.RegisterMetrics(registry, "public")
	health := httpserver.NewHealth(
		httpserver.Check{Name: "core", Probe: resolver.Check},
		httpserver.Check{Name: "objects", Probe: settingProbe("OBJECTS_", files.Ready), Optional: true},
	)
	var fastPath *httpserver.FastPath
	if cfg.FastPath {
		fastPath = public.FastPath()
	}
	listeners, err := httpserver.Open(ctx, log, dependencies(core, files, public),
		httpserver.Listener{Name: "public", Setting: prefix + "LISTEN", Address: cfg.Listen, Server: public.HTTP(), TLS: publicTLS.ServerConfig(), PeerLimits: options.PeerLimits(), FastPath: fastPath},
		httpserver.Listener{Name: "operators", Setting: prefix + "OPS_LISTEN", Address: cfg.OpsListen, Server: httpserver.OperatorServer(options, health, registry, cfg.OpsPprof)},
	)
	if err != nil {
		return err
	}
	defer listeners.Close()

	limitMemory(ctx, log, cfg)
	log.InfoContext(ctx, "renderer started", "revision", renderer.Revision(), "workers", cfg.Pictures.Workers())
	stop := cli.Background(ctx,
		func(ctx context.Context) { pictures.RunProcsBoost(ctx, hasGOMAXPROCS(i.Environ)) },
		core.Run,
		func(ctx context.Context) { core.Follow(ctx, resolver) },
	)
	defer stop()
	err = listeners.Run(ctx, log, health, cfg.Drain, nil)
	keep(context.WithoutCancel(ctx), pictures, cfg.Pictures, log)
	return err
}

// restore caches the pictures that keep kept. The error begins with the name of a setting: its directory cannot be written
// to. A file that is not whole is only logged: what is in front of the damage is cached.
func restore(ctx context.Context, pictures *edge.Pictures, cfg edge.Config, log *slog.Logger) error {
	if cfg.CacheDir == "" {
		return nil
	}
	if probe, err := os.CreateTemp(cfg.CacheDir, "probe.*"); err != nil {
		return config.Finalf("CACHE_DIR", "%w", err)
	} else if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return config.Finalf("CACHE_DIR", "%w", err)
	}
	began := time.Now()
	n, err := pictures.Restore(cfg.CacheDir)
	if err != nil {
		log.WarnContext(ctx, "kept pictures cannot be read", "error", err)
	}
	log.InfoContext(ctx, "kept pictures are cached", "pictures", n, "duration_ms", time.Since(began).Milliseconds())
	return nil
}

// keep keeps the pictures that are requested most for the next start.
func keep(ctx context.Context, pictures *edge.Pictures, cfg edge.Config, log *slog.Logger) {
	if cfg.CacheDir == "" {
		return
	}
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		if n, err := pictures.Keep(cfg.CacheDir, cfg.CacheDirBytes); err != nil {
			log.ErrorContext(ctx, "pictures cannot be kept for the next start", "error", err)
		} else {
			log.InfoContext(ctx, "pictures are kept for the next start", "pictures", n, "duration_ms", time.Since(began).Milliseconds())
		}
	}()
	select {
	case <-done:
	case <-time.After(2 * edge.KeepTimeout):
		log.ErrorContext(ctx, "the directory of pictures does not answer; those of the last start stay")
	}
}

// hasGOMAXPROCS reports whether the environment sets GOMAXPROCS to a number that the runtime takes.
func hasGOMAXPROCS(environ []string) bool {
	return slices.ContainsFunc(environ, func(variable string) bool {
		value, isIt := strings.CutPrefix(variable, "GOMAXPROCS=")
		n, err := strconv.Atoi(value)
		return isIt && err == nil && n > 0
	})
}

// readSettings reads and checks the settings of edge serve.
func readSettings(environ []string) (settings, error) {
	cfg, err := config.Read[settings](prefix, environ)
	if err != nil {
		return cfg, err
	}
	cfg.Objects.ReadOnly = true
	return cfg, nil
}

// dependencies returns the checks of what an edge needs, which run before it listens.
//
// An error that only another setting can correct stops the edge. Other errors are logged, as
// the dependency may become available later: an edge may start before core, and before core
// migrate has prepared the bucket. A directory is prepared on the same machine, so one that is
// not prepared is the wrong one.
func dependencies(core *origin.Core, files *blobstore.Store, public *api.Server) []httpserver.Check {
	store := func(ctx context.Context) error {
		err := files.Ready(ctx)
		if errors.Is(err, blobstore.ErrNotInitialized) && files.IsDirectory() {
			return config.Final(err)
		}
		return err
	}
	return []httpserver.Check{
		{Name: "core", Probe: settingProbe("CORE_", core.Check)},
		{Name: "objects", Probe: settingProbe("OBJECTS_", store)},
		{Name: "api", Probe: settingProbe("", public.CheckUpstream)},
	}
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
