package main

import (
	"fmt"
	"io"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/settings"
)

// prefix begins the name of every setting.
const prefix = "EDGE_"

// config is all settings. Subcommands read the parts they need.
type config struct {
	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8081" help:"address of the public listener"`
	Operators

	Core     origin.Config  `envPrefix:"CORE_"`
	Objects  objects.Config `envPrefix:"OBJECTS_"`
	API      api.Config
	Pictures edge.Config
	Mappings edge.MappingsConfig

	Limits serve.Limits
	Drain  serve.Drain    `envPrefix:"DRAIN_"`
	Log    logging.Config `envPrefix:"LOG_"`
}

// Operators is where operators ask.
type Operators struct {
	OpsListen string `env:"OPS_LISTEN" envDefault:"127.0.0.1:9081" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool   `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to others than loopback too"`
}

// help writes how to use the program.
func help(w io.Writer) error {
	fmt.Fprintln(w, "edge shows pictures of textures, drawn on demand: the images of Veneer, a skin-hosting service.\n\nCommands:")
	for _, c := range commands() {
		fmt.Fprintf(w, "  edge %-8s  %s\n", c.name, c.help)
	}
	fmt.Fprintln(w, "\nSettings come from the environment. Each may be given as NAME_FILE instead, the path of a file that holds the value.")
	return settings.Help[config](w, prefix)
}
