// Package mail delivers e-mails to a mail server by SMTP, with STARTTLS or TLS. The mail server
// is the operator's or a provider's.
package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tlsreload"
)

// Config has the settings of the mail server. Without a host no e-mail is sent.
// Its settings are CORE_SMTP_HOST, CORE_SMTP_PORT, CORE_SMTP_TLS, CORE_SMTP_CA, CORE_SMTP_USER,
// CORE_SMTP_PASSWORD, CORE_SMTP_FROM, CORE_SMTP_TIMEOUT.
type Config struct {
	Host     string        `env:"HOST" example:"smtp.example.org" needs:"FROM" help:"mail server that sends the site's e-mail, as in smtp.example.org; the same at every core; empty: no e-mail is sent"`
	Port     int           `env:"PORT" envDefault:"0" example:"587" min:"0" max:"65535" help:"port of the mail server; 0 for the usual one: 587 with starttls, 465 with tls, 25 with none"`
	TLS      string        `env:"TLS" envDefault:"starttls" oneof:"starttls,tls,none" help:"encryption: starttls or tls, both with a valid certificate only, or none, which sends everything in the clear"`
	CA       string        `env:"CA" example:"/etc/ssl/certs/ca-certificates.crt" needs:"HOST" help:"PEM file of the certificate authorities that verify the mail server; empty: the system's"`
	User     string        `env:"USER" example:"veneer" needs:"HOST,PASSWORD" help:"user name at the mail server; empty: no authentication"`
	Password string        `env:"PASSWORD" example:"the-password-of-that-user" needs:"USER" help:"password of that user"`
	From     string        `env:"FROM" example:"Skins <noreply@example.org>" needs:"HOST" help:"sender of the site's e-mail, as in Skins <noreply@example.org>; required with a host"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"30s" above:"0s" help:"timeout of the delivery of an e-mail"`
}

// ports are the usual ports by the setting TLS.
var ports = map[string]int{"starttls": 587, "tls": 465, "none": 25}

// auths are the authentication mechanisms, the best first. Those that send the password are
// used with TLS only.
var auths = []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5}

// Client is an SMTP client of one mail server.
type Client struct {
	host, address string
	from          *netmail.Address
	domain        string // of from; the name in EHLO
	tls           *tls.Config
	implicitTLS   bool // TLS from the first byte
	timeout       time.Duration
	options       []gomail.Option
}

// Check validates the settings. Its error begins with the name of a setting. Without a host
// they are valid.
func (c Config) Check() error {
	_, err := netmail.ParseAddress(c.From)
	switch {
	case strings.ContainsAny(c.Host, " :/\r\n\t") && net.ParseIP(c.Host) == nil:
		return config.Errorf("HOST", "is %q, but must be a name or an address, without a port", c.Host)
	case c.Host != "" && (err != nil || strings.ContainsAny(c.From, "\r\n")):
		return config.Errorf("FROM", "is %q, but must look like Skins <noreply@example.org>", c.From)
	case c.User != "" && c.TLS == "none":
		return config.Errorf("TLS", "is %q, with which the password would go in the clear, but must be starttls or tls", c.TLS)
	default:
		return nil
	}
}

// New returns a client of a mail server. It does not connect yet.
func New(cfg Config) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(cfg.From)
	if err != nil || cfg.Host == "" {
		return nil, config.Errorf("HOST", "and FROM must be set")
	}
	tlsConfig, err := tlsreload.ClientConfig(cfg.CA)
	if err != nil {
		return nil, config.Errorf("CA", "%w", err)
	}
	tlsConfig.ServerName = cfg.Host
	port := cfg.Port
	if port == 0 {
		port = ports[cfg.TLS]
	}
	c := &Client{
		host: cfg.Host, address: net.JoinHostPort(cfg.Host, strconv.Itoa(port)), from: from,
		domain: from.Address[strings.LastIndexByte(from.Address, '@')+1:],
		tls:    tlsConfig, implicitTLS: cfg.TLS == "tls", timeout: cfg.Timeout,
	}
	policy := gomail.NoTLS
	if cfg.TLS == "starttls" {
		policy = gomail.TLSMandatory
	}
	c.options = []gomail.Option{gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(c.tls), gomail.WithTimeout(c.timeout), gomail.WithHELO(c.domain), gomail.WithoutNoop(), gomail.WithoutRset()}
	if cfg.User != "" {
		c.options = append(c.options, gomail.WithOpportunisticSMTPAuth(auths...), gomail.WithUsername(cfg.User), gomail.WithPassword(cfg.Password))
	}
	return c, nil
}

// Deliver sends an e-mail to the mail server, on a new connection. It returns an Unavailable
// fault if the server accepts no e-mail, a Refused fault if it rejects this one permanently,
// and another error if it may accept it later.
func (c *Client) Deliver(ctx context.Context, email Message) error {
	message, err := c.newMessage(email)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, session, err := c.open(ctx)
	if err != nil {
		return err
	}
	err = client.SendWithSMTPClient(session, message)
	if message.IsDelivered() {
		_, _ = session.Text.Cmd("QUIT") // without waiting for its reply
		return nil
	}
	return deliveryError(err)
}

// Ping connects to the mail server and logs in, and sends nothing.
func (c *Client) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, session, err := c.open(ctx)
	if err != nil {
		return fault.CauseOf(err)
	}
	return session.Quit()
}

// open connects to the server and logs in. The connection is closed when ctx ends.
func (c *Client) open(ctx context.Context) (*gomail.Client, *smtp.Client, error) {
	client, err := gomail.NewClient(c.host, append(slices.Clip(c.options),
		gomail.WithDialContextFunc(func(dialCtx context.Context, network, _ string) (net.Conn, error) {
			conn, err := c.dial(dialCtx, network)
			if err == nil {
				// Once connected, the library ignores the context, and it does not close
				// the connection on errors.
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		}))...)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to send: %w", err)
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	return client, session, nil
}

// dial connects to the server.
func (c *Client) dial(ctx context.Context, network string) (net.Conn, error) {
	var dialer net.Dialer
	if c.implicitTLS {
		secure := tls.Dialer{NetDialer: &dialer, Config: c.tls}
		return secure.DialContext(ctx, network, c.address)
	}
	return dialer.DialContext(ctx, network, c.address)
}

// newMessage encodes an e-mail.
func (c *Client) newMessage(email Message) (*gomail.Msg, error) {
	to, err := netmail.ParseAddress(core.ASCIIAddress(email.To))
	if err != nil || to.Name != "" || strings.ContainsAny(email.To+email.Subject, "\r\n") {
		return nil, fault.New(fault.Refused, "The address or the subject of the e-mail is not valid.")
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(c.from)
	m.ToMailAddress(to)
	m.Subject(email.Subject)
	m.SetDate()
	m.SetMessageIDWithValue(email.ID.String() + "@" + c.domain)
	// Prevents automatic replies, such as out-of-office notes (RFC 3834).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	m.SetBodyString(gomail.TypeTextPlain, email.Text)
	return m, nil
}

// unavailable returns the fault of a server that accepts no e-mail. It has the reply code only,
// as the text of a reply may contain an address.
func unavailable(err error) error {
	if protocolErr, ok := errors.AsType[*textproto.Error](err); ok {
		err = fmt.Errorf("it replies %d before any e-mail", protocolErr.Code)
	}
	return fault.NewUnavailable("mail server", err)
}

// deliveryError returns the error of an e-mail that was not accepted. A rejected sender makes the
// server unavailable: it would be rejected for every e-mail, and the operator can correct it.
func deliveryError(err error) error {
	sendErr, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return fault.NewUnavailable("mail server", errors.New("the connection failed"))
	}
	reason, code := sendErr.Reason, sendErr.ErrorCode()
	cause := fmt.Errorf("%s: it replies %d %s", reason, code, sendErr.EnhancedStatusCode())
	switch {
	case code == 0:
		return fault.NewUnavailable("mail server", fmt.Errorf("%s: the connection failed", reason))
	case reason != gomail.ErrSMTPRcptTo && reason != gomail.ErrSMTPData && reason != gomail.ErrSMTPDataClose || code == 421:
		return fault.NewUnavailable("mail server", cause)
	case code >= 500:
		return &fault.Error{Kind: fault.Refused, Message: "The mail server rejects this e-mail.", Cause: cause}
	default:
		return cause
	}
}
