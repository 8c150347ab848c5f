package main

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// prefix is the prefix of all settings.
const prefix = "CORE_"

// settings has all settings of core serve. Other subcommands read the parts they need.
type settings struct {
	Listen      httpserver.Address `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"address of the public listener"`
	TLSCert     string             `env:"TLS_CERT" example:"/etc/veneer/tls/fullchain.pem" needs:"TLS_KEY" help:"PEM file of the public listener's certificate chain, read again when it changes; empty: plain HTTP"`
	TLSKey      string             `env:"TLS_KEY" example:"/etc/veneer/tls/key.pem" needs:"TLS_CERT" help:"PEM file of that certificate's key"`
	EdgesListen httpserver.Address `env:"EDGES_LISTEN" envDefault:"127.0.0.1:9090" help:"address of the listener for edges"`
	OpsListener
	PublicURL   string `env:"PUBLIC_URL" example:"https://skins.example.org" help:"address at which the API is reached from outside, without a path; needed by YGGDRASIL"`
	TexturesURL string `env:"TEXTURES_URL" example:"https://skins.example.org" help:"address at which the edges are reached from outside; empty: PUBLIC_URL"`

	postgres.Config
	Objects blobstore.Config `envPrefix:"OBJECTS_"`

	TokenKeys   core.KeyRing `env:"TOKEN_KEYS,required,notEmpty" random:"true" example:"key1:$(head -c 32 /dev/urandom | base64)" help:"keys of bearer tokens, as id:base64,id:base64 of at least 32 bytes each; the first one signs, all of them verify"`
	TokenIssuer string       `env:"TOKEN_ISSUER" envDefault:"veneer" help:"issuer of tokens; tokens of other issuers are rejected"`
	core.SessionLimits
	Players  core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
	Quotas   core.Quotas        `envPrefix:"QUOTA_"`
	Logins   core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores   core.Scores        `envPrefix:"SCORE_"`
	API      api.Config

	Console   string         `env:"CONSOLE" envDefault:"on" help:"web console under /console/, to which / leads: on or off"`
	Launchers string         `env:"YGGDRASIL" envDefault:"on" help:"API of launchers and game servers under /api/yggdrasil: on, which takes PUBLIC_URL and YGGDRASIL_KEY_FILE, or off"`
	Yggdrasil launcherConfig `envPrefix:"YGGDRASIL_"`

	NotificationRetention time.Duration `env:"NOTIFICATION_RETENTION" envDefault:"8760h" help:"how long notifications are stored; 0s: for ever"`

	EdgeSecrets  []string `env:"EDGE_SECRETS,required,notEmpty" random:"true" example:"$(head -c 24 /dev/urandom | base64)" help:"secrets of edges, comma-separated; an edge must send one of them"`
	EdgesTLSCert string   `env:"EDGES_TLS_CERT" example:"/etc/veneer/tls/edges.pem" needs:"EDGES_TLS_KEY" help:"PEM file of the certificate chain of the listener for edges, read again when it changes; empty: plain HTTP"`
	EdgesTLSKey  string   `env:"EDGES_TLS_KEY" example:"/etc/veneer/tls/edges-key.pem" needs:"EDGES_TLS_CERT" help:"PEM file of that certificate's key"`

	Purge cdnpurge.Config `envPrefix:"PURGE_"`

	SMTP mail.Config     `envPrefix:"SMTP_"`
	Mail core.MailConfig `envPrefix:"MAIL_"`

	Demo    bool `env:"DEMO" envDefault:"false" help:"create a demo user with players and textures, once"`
	Limits  httpserver.Limits
	Proxies clientip.Config
	Drain   httpserver.Drain `envPrefix:"DRAIN_"`
	Log     logging.Config   `envPrefix:"LOG_"`
	Traces  tracing.Config   `envPrefix:"TRACES_"`
}

// check validates settings without connecting to anything. Its error begins with the name of a
// setting.
func (c settings) check() error {
	if c.NotificationRetention < 0 {
		return fmt.Errorf("%sNOTIFICATION_RETENTION is %s, but must not be negative", prefix, c.NotificationRetention)
	}
	if c.Connections >= 2 && c.Textures.Concurrency >= int(c.Connections) {
		return fmt.Errorf("%sUPLOAD_CONCURRENCY is %d, but must be less than %sDATABASE_CONNECTIONS, %d: each upload holds one; for example %[1]sUPLOAD_CONCURRENCY=%[5]d",
			prefix, c.Textures.Concurrency, prefix, c.Connections, max(1, c.Connections/3))
	}
	if c.API.Registration == "confirm" && !c.sendsMail() {
		return fmt.Errorf("%sSMTP_HOST must be set too, since %sREGISTRATION is confirm: it sends e-mail", prefix, prefix)
	}
	for name, value := range map[string]string{"PUBLIC_URL": c.PublicURL, "TEXTURES_URL": c.TexturesURL} {
		if parsed, ok := config.ParseURL(value); value != "" && (!ok || strings.TrimRight(parsed.String(), "/") != parsed.Scheme+"://"+parsed.Host) {
			return fmt.Errorf("%s%s is %s, but must be an address as in https://skins.example.org, without a path", prefix, name, config.QuoteRedacted(value))
		}
	}
	switch from, to := prefix+"SMTP_HOST", prefix+"MAIL_URL"; {
	case c.sendsMail() && c.mailURL() == "":
		return fmt.Errorf("%s must be set too, since %s is", to, from)
	case !c.sendsMail() && c.Mail.URL != "":
		return fmt.Errorf("%s must be set too, since %s is", from, to)
	}
	if _, err := playerNames(c.Players); err != nil {
		return err
	}
	for _, part := range []struct {
		prefix string
		err    error
	}{
		{"", checkSwitch("CONSOLE", c.Console)},
		{"", checkSwitch("YGGDRASIL", c.Launchers)},
		{"", c.Limits.Check()},
		{"", c.Check()},
		{"UPLOAD_", c.Textures.Check()},
		{"QUOTA_", c.Quotas.Check()},
		{"LIMIT_", c.Logins.Check()},
		{"SCORE_", c.Scores.Check()},
		{"DRAIN_", c.Drain.Check()},
		{"PURGE_", c.Purge.Check()},
		{"SMTP_", c.SMTP.Check()},
		{"MAIL_", c.Mail.Check()},
		{"YGGDRASIL_", c.Yggdrasil.Check()},
	} {
		if part.err != nil {
			return settingError(part.prefix, part.err)
		}
	}
	return nil
}

// playerNames returns the validator of players' names.
func playerNames(c core.PlayerLimits) (*core.PlayerNames, error) {
	if _, err := syntax.Parse(c.NamePattern, syntax.Perl); err != nil {
		reason := err.Error()
		if wrong, ok := errors.AsType[*syntax.Error](err); ok {
			reason = wrong.Code.String()
		}
		return nil, fmt.Errorf("%sPLAYER_NAME_PATTERN is %q, but must be a regular expression (RE2): it has %s", prefix, c.NamePattern, reason)
	}
	if c.NameMin > c.NameMax {
		return nil, fmt.Errorf("%sPLAYER_NAME_MIN is %d, but must be no more than %sPLAYER_NAME_MAX, %d", prefix, c.NameMin, prefix, c.NameMax)
	}
	names, err := core.NewPlayerNames(c)
	if err != nil {
		return nil, settingError("", err)
	}
	return names, nil
}

// checkSwitch checks a setting that is on or off.
func checkSwitch(name, value string) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%s is %q, but must be on or off", name, value)
	}
	return nil
}

// mailURL returns the address of the site's pages in e-mail: the console, unless it is set.
func (c settings) mailURL() string {
	if c.Mail.URL != "" || !c.sendsMail() || c.Console == "off" || c.PublicURL == "" {
		return c.Mail.URL
	}
	return strings.TrimRight(c.PublicURL, "/") + console.Root
}

// sendsMail reports whether a mail server is configured.
func (c settings) sendsMail() bool { return c.SMTP.Host != "" }

// OpsListener has the settings of the operators' listener.
type OpsListener struct {
	OpsListen httpserver.Address `env:"OPS_LISTEN" envDefault:"127.0.0.1:9080" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool               `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to all addresses, not only to loopback"`
}

// settingError completes an error that begins with the last part of the name of a setting.
func settingError(part string, err error) error { return fmt.Errorf("%s%s%w", prefix, part, err) }

// objectStore returns the texture store.
func objectStore(c blobstore.Config) (*blobstore.Store, error) {
	store, err := blobstore.New(c)
	if err != nil {
		return nil, settingError("OBJECTS_", err)
	}
	return store, nil
}
