package main

import (
	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// prefix begins the name of every setting.
const prefix = "EDGE_"

// settings is all settings. Subcommands read the parts they need.
type settings struct {
	PublicListener
	OpsListener

	Core     origin.Config    `envPrefix:"CORE_"`
	Objects  blobstore.Config `envPrefix:"OBJECTS_"`
	API      api.Config
	FastPath bool `env:"FAST_PATH" envDefault:"true" help:"answer most requests for what is in memory as they are read, ahead of the HTTP server; false to see what that gains"`
	Pictures edge.Config
	Encoder  render.Encoder `env:"ENCODER" envDefault:"native" help:"what writes pictures: native, or libvips, which is slower and writes larger files"`
	Mappings edge.ResolverConfig

	Limits  httpserver.Limits
	Proxies clientip.Config
	Drain   httpserver.Drain `envPrefix:"DRAIN_"`
	Log     logging.Config   `envPrefix:"LOG_"`
	Traces  tracing.Config   `envPrefix:"TRACES_"`
}

// PublicListener is where everybody asks.
type PublicListener struct {
	Listen  httpserver.Address `env:"LISTEN" envDefault:"127.0.0.1:8081" help:"address of the public listener"`
	TLSCert string             `env:"TLS_CERT" example:"/etc/veneer/tls/fullchain.pem" needs:"TLS_KEY" help:"file with the certificate chain of the public listener, in PEM, read again when it changes; empty for plain HTTP"`
	TLSKey  string             `env:"TLS_KEY" example:"/etc/veneer/tls/key.pem" needs:"TLS_CERT" help:"file with that certificate's key, in PEM"`
}

// OpsListener is where operators ask.
type OpsListener struct {
	OpsListen httpserver.Address `env:"OPS_LISTEN" envDefault:"127.0.0.1:9081" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool               `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to others than loopback too"`
}
