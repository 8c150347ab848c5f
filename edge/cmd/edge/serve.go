package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/skin/paint"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// serveCommand builds the edge from the bottom up and serves until told to stop.
func serveCommand(ctx context.Context, i cli.Invocation) error {
	if _, err := i.ParseArg(cli.Flags("edge serve"), ""); err != nil {
		return err
	}
	config, err := config.Read[settings](prefix, i.Environ)
	if err != nil {
		return err
	}
	if err := config.Limits.Check(); err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	if err := config.Drain.Check(); err != nil {
		return fmt.Errorf("%sDRAIN_%w", prefix, err)
	}
	log, err := logging.New(i.Stdout, config.Log)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	traces, err := tracing.New(ctx, "edge", config.Traces, log)
	if err != nil {
		return fmt.Errorf("%sTRACES_%w", prefix, err)
	}
	defer traces.Close()
	core, err := origin.NewCore(config.Core, log)
	if err != nil {
		return fmt.Errorf("%sCORE_%w", prefix, err)
	}
	config.Objects.ReadOnly = true
	files, err := blobstore.New(config.Objects)
	if err != nil {
		return fmt.Errorf("%sOBJECTS_%w", prefix, err)
	}
	mappings, err := edge.NewResolver(config.Mappings, core)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}

	renderer, err := render.Start(render.Config{Encoder: config.Encoder, Log: log})
	if err != nil {
		return err
	}
	defer renderer.Close()
	pictures, err := edge.NewPictures(config.Pictures, mappings, origin.NewFiles(files), renderer, paint.Default())
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	defer pictures.Close()
	publicTLS, err := tlsreload.Load(config.TLSCert, config.TLSKey, log)
	if err != nil {
		return fmt.Errorf("%sTLS_%w", prefix, err)
	}
	options := httpserver.Options{Log: log, LogSampleRate: config.Log.SampleRate, Limits: config.Limits, Proxies: clientip.New(config.Proxies, log), Tracer: traces}
	public, err := api.New(options, pictures, config.API)
	if err != nil {
		return fmt.Errorf("%s%w", prefix, err)
	}
	registry := prometheus.NewRegistry()
	mappings.Expose(registry)
	pictures.Expose(registry)
	renderer.Expose(registry)
	publicTLS.RegisterMetrics(registry, "public")
	var fastPath *httpserver.FastPath
	if config.FastPath {
		fastPath = public.FastPath()
	}
	health := httpserver.NewHealth(
		httpserver.Check{Name: "core", Probe: mappings.Check},
		httpserver.Check{Name: "objects", Probe: withSetting("OBJECTS_", files.Ready), Optional: true},
	)
	listeners, err := httpserver.Open(ctx, log, dependencies(core, files, public),
		httpserver.Listener{Name: "public", Setting: prefix + "LISTEN", Address: config.Listen, Server: public.HTTP(), TLS: publicTLS.ServerConfig(), PeerLimits: options.PeerLimits(), FastPath: fastPath},
		httpserver.Listener{Name: "operators", Setting: prefix + "OPS_LISTEN", Address: config.OpsListen, Server: httpserver.OperatorServer(options, health, registry, config.OpsPprof)},
	)
	if err != nil {
		return err
	}
	defer listeners.Close()
	workers := config.Pictures.Workers()
	limitMemory(ctx, log, config.Pictures.CacheBytes+config.Pictures.SheetBytes+config.Mappings.Bytes+config.Mappings.NegativeBytes, workers, config.Limits.BodiesBytes, config.TLSCert != "")
	log.InfoContext(ctx, "renderer started", "revision", renderer.Revision(), "encoder", config.Encoder.String(), "webp", renderer.CanWebP(), "slots", workers)

	// Core is needed until the last request is answered, which is after ctx ends.
	var background sync.WaitGroup
	defer background.Wait()
	backgroundCtx, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	background.Go(func() { pictures.RunProcsBoost(backgroundCtx) })
	background.Go(func() { core.Run(backgroundCtx) })
	background.Go(func() { core.Follow(backgroundCtx, mappings) })
	return listeners.Run(ctx, log, health, config.Drain, nil)
}

// dependencies returns what an edge needs.
//
// What is wrong with the setting that leads there stops the edge at its start. All else may
// come later: an edge may start before core does, and before core migrate has prepared a
// bucket. A directory comes by no other machine, so one that is not prepared is another one.
func dependencies(core *origin.Core, files *blobstore.Store, public *api.Server) []httpserver.Check {
	store := func(ctx context.Context) error {
		err := files.Ready(ctx)
		if errors.Is(err, blobstore.ErrNotInitialized) && files.IsDirectory() {
			return config.SettingError{Cause: err}
		}
		return err
	}
	return []httpserver.Check{
		{Name: "core", Probe: withSetting("CORE_", core.Check)},
		{Name: "objects", Probe: withSetting("OBJECTS_", store)},
		{Name: "api", Probe: withSetting("", public.CheckUpstream)},
	}
}

// withSetting returns a probe whose errors begin with the name of a setting as operators write
// it, and have an example of a right value.
func withSetting(part string, probe func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := probe(ctx); err != nil {
			return config.Explain[settings](prefix, fmt.Errorf("%s%s%w", prefix, part, err))
		}
		return nil
	}
}
