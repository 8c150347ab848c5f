package main

import (
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/hook"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/smtp"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// prefix begins the name of every setting.
const prefix = "CORE_"

// config is all settings. Subcommands read the parts they need.
type config struct {
	Listen      string `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"address of the public listener"`
	TLSCert     string `env:"TLS_CERT" help:"file with the certificate chain of the public listener, in PEM, read again when it changes; empty for plain HTTP"`
	TLSKey      string `env:"TLS_KEY" help:"file with that certificate's key, in PEM"`
	EdgesListen string `env:"EDGES_LISTEN" envDefault:"127.0.0.1:9090" help:"address of the listener for edges"`
	Operators

	postgres.Config
	Objects objects.Config `envPrefix:"OBJECTS_"`

	TokenKeys   core.KeyRing `env:"TOKEN_KEYS,required,notEmpty" help:"keys of bearer tokens, as id:base64,id:base64 of at least 32 bytes each; the first signs, all verify"`
	TokenIssuer string       `env:"TOKEN_ISSUER" envDefault:"veneer" help:"issuer that tokens name, and must name"`
	core.SessionLimits
	Players  core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures core.TextureLimits `envPrefix:"TEXTURE_"`
	Quotas   core.Quotas        `envPrefix:"LIMIT_"`
	Logins   core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores   core.Scores        `envPrefix:"SCORE_"`
	API      api.Config

	NotificationsKept time.Duration `env:"NOTIFICATIONS_KEPT" envDefault:"8760h" help:"how long notifications are kept; 0s for ever"`

	EdgeSecrets  []string `env:"EDGE_SECRETS,required,notEmpty" help:"secrets that edges may show, comma-separated"`
	EdgesTLSCert string   `env:"EDGES_TLS_CERT" help:"file with the certificate chain of the edges' listener, in PEM, read again when it changes; empty for plain HTTP"`
	EdgesTLSKey  string   `env:"EDGES_TLS_KEY" help:"file with that certificate's key, in PEM"`

	Purge hook.Config `envPrefix:"PURGE_"`

	SMTP smtp.Config     `envPrefix:"SMTP_"`
	Mail core.MailConfig `envPrefix:"MAIL_"`

	Demo    bool `env:"DEMO" envDefault:"false" help:"put a demo user with players and textures in, once"`
	Limits  serve.Limits
	Proxies serve.ProxyConfig
	Drain   serve.Drain    `envPrefix:"DRAIN_"`
	Log     logging.Config `envPrefix:"LOG_"`
	Traces  tracing.Config `envPrefix:"TRACES_"`
}

// check returns an error that names a setting which makes no sense by itself.
func (c config) check() error {
	if c.NotificationsKept < 0 {
		return fmt.Errorf("%sNOTIFICATIONS_KEPT is %s, but must not be negative", prefix, c.NotificationsKept)
	}
	if c.Textures.AtOnce >= int(c.Connections) {
		return fmt.Errorf("%sTEXTURE_AT_ONCE is %d, but must be less than %sDATABASE_CONNECTIONS, %d: each upload holds one", prefix, c.Textures.AtOnce, prefix, c.Connections)
	}
	for _, part := range []struct {
		prefix string
		err    error
	}{
		{"", c.Limits.Check()},
		{"", c.Check()},
		{"TEXTURE_", c.Textures.Check()},
		{"LIMIT_", c.Quotas.Check()},
		{"LIMIT_", c.Logins.Check()},
		{"SCORE_", c.Scores.Check()},
		{"DRAIN_", c.Drain.Check()},
	} {
		if part.err != nil {
			return fmt.Errorf("%s%s%w", prefix, part.prefix, part.err)
		}
	}
	return nil
}

// sendsMail reports whether the site sends e-mail.
func (c config) sendsMail() bool { return c.SMTP.Host != "" }

// Operators is where operators ask.
type Operators struct {
	OpsListen string `env:"OPS_LISTEN" envDefault:"127.0.0.1:9080" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool   `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to others than loopback too"`
}

// objectStore returns the texture store, for one who writes it.
func objectStore(c objects.Config) (*objects.Store, error) {
	store, err := objects.New(c)
	if err != nil {
		return nil, fmt.Errorf("%sOBJECTS_%w", prefix, err)
	}
	return store, nil
}
