// Package smtp takes a site's e-mail to a mail server, which sends it on: the
// operator's own, or a provider's.
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

	"github.com/wneessen/go-mail"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tlsreload"
)

// Config says where the mail server is. Without a host no e-mail is sent.
type Config struct {
	Host     string        `env:"HOST" example:"smtp.example.org" needs:"FROM" help:"mail server that sends the site's e-mail, as in smtp.example.org; the same at every core; empty: no e-mail is sent"`
	Port     int           `env:"PORT" envDefault:"0" example:"587" help:"its port; 0 for the usual one: 587 with starttls, 465 with tls, 25 with none"`
	TLS      string        `env:"TLS" envDefault:"starttls" help:"how it is spoken to: starttls or tls, both only with a valid certificate, or none, which sends all in the clear"`
	CA       string        `env:"CA" example:"/etc/ssl/certs/ca-certificates.crt" needs:"HOST" help:"path of a PEM file with the authorities that its certificate may come from; empty: the system's"`
	User     string        `env:"USER" example:"veneer" needs:"HOST,PASSWORD" help:"user name at the mail server; empty: no authentication"`
	Password string        `env:"PASSWORD" example:"the-password-of-that-user" needs:"USER" help:"that user's password"`
	From     string        `env:"FROM" example:"Skins <noreply@example.org>" needs:"HOST" help:"sender of the site's e-mail, as in Skins <noreply@example.org>; required with a host"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"30s" help:"longest time that sending one e-mail may take"`
}

// ports are the usual ones by how a server is spoken to.
var ports = map[string]int{"starttls": 587, "tls": 465, "none": 25}

// auths are the ways to sign in, the best first. A password in the clear goes only
// over TLS.
var auths = []mail.SMTPAuthType{mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthPlain, mail.SMTPAuthLogin, mail.SMTPAuthCramMD5}

// Client takes e-mails to a mail server.
type Client struct {
	host, address string
	from          *netmail.Address
	domain        string // of from: how we call ourselves
	tls           *tls.Config
	implicitTLS   bool // TLS from the first byte
	timeout       time.Duration
	options       []mail.Option
}

// Check returns an error that names a setting which makes no sense. That there is no host
// makes sense where no e-mail is sent.
func (c Config) Check() error {
	_, ok := ports[c.TLS]
	_, err := netmail.ParseAddress(c.From)
	switch {
	case !ok:
		return fmt.Errorf("TLS is %q, but must be starttls, tls or none", c.TLS)
	case strings.ContainsAny(c.Host, " :/\r\n\t") && net.ParseIP(c.Host) == nil:
		return fmt.Errorf("HOST is %q, but must be a name or an address, without a port", c.Host)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("PORT is %d, but must be 0 to 65535", c.Port)
	case c.Host != "" && (err != nil || strings.ContainsAny(c.From, "\r\n")):
		return fmt.Errorf("FROM is %q, but must look like Skins <noreply@example.org>", c.From)
	case c.User != "" && c.TLS == "none":
		return fmt.Errorf("TLS is %q, with which the password would go in the clear, but must be starttls or tls", c.TLS)
	case c.Timeout <= 0:
		return fmt.Errorf("TIMEOUT is %s, but must be longer than 0", c.Timeout)
	default:
		return nil
	}
}

// New returns a client of a mail server, which must have a host. It does not connect yet.
func New(cfg Config) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(cfg.From)
	if err != nil || cfg.Host == "" {
		return nil, errors.New("HOST and FROM must be set")
	}
	tlsConfig, err := tlsreload.ClientConfig(cfg.CA)
	if err != nil {
		return nil, fmt.Errorf("CA %w", err)
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
	policy := mail.NoTLS
	if cfg.TLS == "starttls" {
		policy = mail.TLSMandatory
	}
	c.options = []mail.Option{mail.WithTLSPolicy(policy), mail.WithTLSConfig(c.tls), mail.WithTimeout(c.timeout), mail.WithHELO(c.domain), mail.WithoutNoop(), mail.WithoutRset()}
	if cfg.User != "" {
		c.options = append(c.options, mail.WithOpportunisticSMTPAuth(auths...), mail.WithUsername(cfg.User), mail.WithPassword(cfg.Password))
	}
	return c, nil
}

// Deliver takes a letter to the mail server, on a connection of its own. The
// context bounds how long that may take.
func (c *Client) Deliver(ctx context.Context, email Message) error {
	message, err := c.newMessage(email)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, err := mail.NewClient(c.host, append(slices.Clip(c.options),
		mail.WithDialContextFunc(func(dialCtx context.Context, network, _ string) (net.Conn, error) {
			conn, err := c.dial(dialCtx, network)
			if err == nil {
				// Once it is connected the library looks at no context, and it leaves the
				// connection open when something fails.
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		}))...)
	if err != nil {
		return fmt.Errorf("prepare to send: %w", err)
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return unavailable(err)
	}
	err = client.SendWithSMTPClient(session, message)
	if message.IsDelivered() {
		_, _ = session.Text.Cmd("QUIT") // for politeness; nobody waits for an answer
		return nil
	}
	return deliveryError(err)
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

// newMessage returns an e-mail as it is sent.
func (c *Client) newMessage(email Message) (*mail.Msg, error) {
	to, err := netmail.ParseAddress(email.To)
	if err != nil || to.Name != "" || strings.ContainsAny(email.To+email.Subject, "\r\n") {
		return nil, fault.New(fault.Refused, "The letter's address or subject is none.")
	}
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	m.FromMailAddress(c.from)
	m.ToMailAddress(to)
	m.Subject(email.Subject)
	m.SetDate()
	m.SetMessageIDWithValue(email.ID.String() + "@" + c.domain)
	// Nobody's out-of-office note is to answer (RFC 3834).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader(mail.HeaderXAutoResponseSuppress, "All")
	m.SetBodyString(mail.TypeTextPlain, email.Text)
	return m, nil
}

// unavailable returns the fault of a server that takes nothing from us. What it said may
// hold an address, so only its number is told.
func unavailable(err error) error {
	if protocolErr, ok := errors.AsType[*textproto.Error](err); ok {
		err = fmt.Errorf("it answers %d before any e-mail", protocolErr.Code)
	}
	return fault.NewUnavailable("mail server", err)
}

// deliveryError returns why a letter was not taken. A server that finds fault with
// the sender finds it with all letters, and the operator can mend it.
func deliveryError(err error) error {
	sendErr, ok := errors.AsType[*mail.SendError](err)
	if !ok {
		return fault.NewUnavailable("mail server", errors.New("it broke off"))
	}
	reason, code := sendErr.Reason, sendErr.ErrorCode()
	cause := fmt.Errorf("%s: it answers %d %s", reason, code, sendErr.EnhancedStatusCode())
	switch {
	case code == 0:
		return fault.NewUnavailable("mail server", fmt.Errorf("%s: it broke off", reason))
	case reason != mail.ErrSMTPRcptTo && reason != mail.ErrSMTPData && reason != mail.ErrSMTPDataClose || code == 421:
		return fault.NewUnavailable("mail server", cause)
	case code >= 500:
		return &fault.Error{Kind: fault.Refused, Message: "The mail server does not take this e-mail.", Cause: cause}
	default:
		return cause
	}
}
