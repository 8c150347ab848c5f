package main

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/pages"
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
// Its settings are CORE_LISTEN, CORE_TLS_CERT, CORE_TLS_KEY, CORE_EDGES_LISTEN, CORE_PUBLIC_URL,
// CORE_TEXTURES_URL, CORE_TOKEN_KEYS, CORE_TOKEN_ISSUER, CORE_CONSOLE, CORE_YGGDRASIL,
// CORE_NOTIFICATION_RETENTION, CORE_EDGE_SECRETS, CORE_EDGES_TLS_CERT, CORE_EDGES_TLS_KEY.
type settings struct {
	Listen      httpserver.Address `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"address of the public listener"`
	TLSCert     string             `env:"TLS_CERT" example:"/etc/veneer/tls/fullchain.pem" needs:"TLS_KEY" help:"PEM file of the public listener's certificate chain, read again when it changes; empty: plain HTTP"`
	TLSKey      string             `env:"TLS_KEY" example:"/etc/veneer/tls/key.pem" needs:"TLS_CERT" help:"PEM file of that certificate's key"`
	EdgesListen httpserver.Address `env:"EDGES_LISTEN" envDefault:"127.0.0.1:9090" help:"address of the listener for edges"`
	OpsListener
	PublicURL   string `env:"PUBLIC_URL" example:"https://skins.example.org" help:"address at which the API is reached from outside, without a path; needed by YGGDRASIL"`
	TexturesURL string `env:"TEXTURES_URL" example:"https://skins.example.org" help:"address at which the edges are reached from outside, where core redirects what it does not have; empty: PUBLIC_URL, without redirects"`

	postgres.Config
	Objects blobstore.Config `envPrefix:"OBJECTS_"`

	TokenKeys   core.KeyRing `env:"TOKEN_KEYS,required,notEmpty" random:"true" example:"key1:$(head -c 32 /dev/urandom | base64)" help:"keys of bearer tokens, as id:base64,id:base64 of at least 32 bytes each; the first one signs, all of them verify"`
	TokenIssuer string       `env:"TOKEN_ISSUER" envDefault:"veneer" help:"issuer of tokens; tokens of other issuers are rejected"`
	core.SessionLimits
	Players  core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
	Quotas   core.Quotas        `envPrefix:"QUOTA_"`
	Logins   core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores   core.ScorePrices   `envPrefix:"SCORE_"`
	API      api.Config
	Site     core.Branding `envPrefix:"SITE_"`
	Pages    pages.Config  `envPrefix:"SITE_"`

	Console   string         `env:"CONSOLE" envDefault:"on" oneof:"on,off" help:"web console under /console/, and the pages for visitors, / among them: on or off"`
	Launchers string         `env:"YGGDRASIL" envDefault:"on" oneof:"on,off" help:"API of launchers and game servers under /api/yggdrasil: on, which takes PUBLIC_URL and YGGDRASIL_KEY_FILE, or off"`
	Yggdrasil launcherConfig `envPrefix:"YGGDRASIL_"`

	NotificationRetention time.Duration `env:"NOTIFICATION_RETENTION" envDefault:"8760h" min:"0s" help:"how long notifications are stored; 0s: for ever"`

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
func (s settings) check() error {
	if s.Connections >= 2 && s.Textures.Concurrency >= int(s.Connections) {
		return &config.Error{
			Setting: "CORE_UPLOAD_CONCURRENCY", Example: strconv.Itoa(int(max(1, s.Connections/3))),
			Cause: fmt.Errorf("is %d, but must be less than CORE_DATABASE_CONNECTIONS, %d: each upload holds one", s.Textures.Concurrency, s.Connections),
		}
	}
	if s.API.Registration == "confirm" && !s.sendsMail() {
		return config.Errorf("CORE_SMTP_HOST", "must be set too, since CORE_REGISTRATION is confirm: it sends e-mail")
	}
	for name, value := range map[string]string{"CORE_PUBLIC_URL": s.PublicURL, "CORE_TEXTURES_URL": s.TexturesURL} {
		if parsed, ok := config.ParseURL(value); value != "" && (!ok || strings.TrimRight(parsed.String(), "/") != parsed.Scheme+"://"+parsed.Host) {
			return config.Errorf(name, "is %s, but must be an address as in https://skins.example.org, without a path", config.QuoteRedacted(value))
		}
	}
	switch {
	case s.sendsMail() && s.mailURL() == "":
		return config.Errorf("CORE_MAIL_URL", "must be set too, since CORE_SMTP_HOST is")
	case !s.sendsMail() && s.Mail.URL != "":
		return config.Errorf("CORE_SMTP_HOST", "must be set too, since CORE_MAIL_URL is")
	}
	if _, err := playerNames(s.Players); err != nil {
		return err
	}
	for _, part := range []struct {
		prefix string
		err    error
	}{
		{"PURGE_", s.Purge.Check()},
		{"SMTP_", s.SMTP.Check()},
		{"MAIL_", s.Mail.Check()},
		{"SITE_", s.Site.Check()},
		{"YGGDRASIL_", s.Yggdrasil.Check()},
	} {
		if part.err != nil {
			return config.In(prefix+part.prefix, part.err)
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
		return nil, config.Errorf("CORE_PLAYER_NAME_PATTERN", "is %q, but must be a regular expression (RE2): it has %s", c.NamePattern, reason)
	}
	if c.NameMin > c.NameMax {
		return nil, config.Errorf("CORE_PLAYER_NAME_MIN", "is %d, but must be no more than CORE_PLAYER_NAME_MAX, %d", c.NameMin, c.NameMax)
	}
	names, err := core.NewPlayerNames(c)
	if err != nil {
		return nil, config.In(prefix, err)
	}
	return names, nil
}

// mailURL returns the address of the site's pages in e-mail: the console, unless it is set.
func (s settings) mailURL() string {
	if s.Mail.URL != "" || !s.sendsMail() || s.Console == "off" || s.PublicURL == "" {
		return s.Mail.URL
	}
	return strings.TrimRight(s.PublicURL, "/") + console.Root
}

// picturesURL returns the origin of pictures, empty if it is the pages' origin.
func (s settings) picturesURL() string {
	origin := strings.TrimRight(s.TexturesURL, "/")
	if origin == strings.TrimRight(s.PublicURL, "/") {
		return ""
	}
	return origin
}

// sendsMail reports whether a mail server is configured.
func (s settings) sendsMail() bool { return s.SMTP.Host != "" }

// OpsListener has the settings of the operators' listener.
// Its settings are CORE_OPS_LISTEN, CORE_OPS_PPROF.
type OpsListener struct {
	OpsListen httpserver.Address `env:"OPS_LISTEN" envDefault:"127.0.0.1:9080" help:"address of the operators' listener: /livez, /readyz, /metrics, /debug/pprof"`
	OpsPprof  bool               `env:"OPS_PPROF" envDefault:"false" help:"answer /debug/pprof to all addresses, not only to loopback"`
}

// objectStore returns the texture store.
func objectStore(c blobstore.Config) (*blobstore.Store, error) {
	store, err := blobstore.New(c)
	if err != nil {
		return nil, config.In(prefix+"OBJECTS_", err)
	}
	return store, nil
}
