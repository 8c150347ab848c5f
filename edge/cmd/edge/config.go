package main

import (
	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// prefix is the prefix of all settings.
const prefix = "EDGE_"

// settings has all settings of edge serve. Other subcommands read the parts they need.
// Its setting is EDGE_FAST_PATH.
type settings struct {
	PublicListener
	OpsListener

	Core     origin.Config    `envPrefix:"CORE_"`
	Objects  blobstore.Config `envPrefix:"OBJECTS_"`
	API      api.Config
	FastPath bool `env:"FAST_PATH" envDefault:"true" help:"answer most cache hits in the connection's read loop, before the HTTP server; false to measure the difference"`
	Pictures edge.Config
	Mappings edge.ResolverConfig

	Limits  httpserver.Limits
	Proxies clientip.Config
	Drain   httpserver.Drain `envPrefix:"DRAIN_"`
	Log     logging.Config   `envPrefix:"LOG_"`
	Traces  tracing.Config   `envPrefix:"TRACES_"`
}

// PublicListener has the settings of the public listener.
// Its setting is EDGE_TLS_KEY.
type PublicListener struct {
	Listen  httpserver.Address `env:"LISTEN" envDefault:"127.0.0.1:8081" help:"address of the public listener"`
	TLSCert string             `env:"TLS_CERT" example:"/etc/veneer/tls/fullchain.pem" needs:"TLS_KEY" help:"PEM file of the public listener's certificate chain, read again when it changes; empty: plain HTTP"`
	TLSKey  string             `env:"TLS_KEY" example:"/etc/veneer/tls/key.pem" needs:"TLS_CERT" help:"PEM file of that certificate's key"`
}

// OpsListener has the settings of the operators' listener.
// Its settings are EDGE_OPS_LISTEN, EDGE_OPS_PPROF.
type OpsListener struct {
	OpsListen httpserver.Address `env:"OPS_LISTEN" envDefault:"127.0.0.1:9081" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool               `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to all addresses, not only to loopback"`
}
