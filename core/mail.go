package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// MailConfig configures the content of e-mail, the validity of its links and retries.
// Its settings are CORE_MAIL_URL, CORE_MAIL_VERIFICATION_TTL, CORE_MAIL_RESET_TTL,
// CORE_MAIL_PER_HOUR, CORE_MAIL_UNCONFIRMED_PER_HOUR, CORE_MAIL_RETRY_FOR.
type MailConfig struct {
	URL          string        `env:"URL" example:"https://skins.example.org" help:"address of the site's pages, as in https://skins.example.org: links in e-mail lead to /verify and /reset there, with #token=, the token, &email= and the address behind, those of a registration to /verify?registration; empty: the console at CORE_PUBLIC_URL, one of which is required with CORE_SMTP_HOST"`
	Verification time.Duration `env:"VERIFICATION_TTL" envDefault:"24h" min:"1m" help:"how long a link works that verifies an address or confirms a registration"`
	Reset        time.Duration `env:"RESET_TTL" envDefault:"1h" min:"1m" help:"how long a link works that resets a password"`
	PerHour      int           `env:"PER_HOUR" envDefault:"5" min:"0" max:"1000000" help:"most e-mails of one kind to an address in an hour, from all cores; 0 for any number"`
	// UnconfirmedPerHour bounds the mails to addresses that clients of many networks may have made up.
	UnconfirmedPerHour int           `env:"UNCONFIRMED_PER_HOUR" envDefault:"2000" min:"0" max:"1000000" help:"most e-mails of registrations, verifications and new addresses in an hour, from all cores: further ones wait, and resets and notices leave before them; 0 for any number"`
	RetryFor           time.Duration `env:"RETRY_FOR" envDefault:"24h" min:"1m" help:"how long sending an e-mail is retried"`
}

// Check returns an error that names an invalid setting. An empty URL is valid: a site that sends no
// e-mail needs none.
func (c MailConfig) Check() error {
	target, ok := config.ParseURL(c.URL)
	if c.URL != "" && (!ok || target.RawQuery != "" || target.Fragment != "" || !isPrintable(c.URL) || strings.Contains(c.URL, " ")) {
		return config.Errorf("URL", "is %s, but must look like https://skins.example.org", config.QuoteRedacted(c.URL))
	}
	return nil
}

// Purpose is the kind of an e-mail.
type Purpose string

// The purposes. The outbox holds all but ForOwner. All but the last three have a token.
const (
	ForVerification Purpose = "verification" // verifies the address of a user
	ForAddress      Purpose = "address"      // verifies an address that a user asked to change to
	ForReset        Purpose = "reset"        // resets a password
	ForRegistration Purpose = "registration" // confirms a registration
	ForChange       Purpose = "change"       // notice to the old address after a change
	ForPassword     Purpose = "password"     // notice of a new password
	ForOwner        Purpose = "owner"        // notice that another account asked for the address
)

// sendablePurposes are those that this release can render. During an upgrade, cores of a later
// release may queue others.
var sendablePurposes = []Purpose{ForVerification, ForAddress, ForReset, ForRegistration, ForChange, ForPassword}

// QueuedMail is an e-mail that was claimed from the outbox.
type QueuedMail struct {
	ID       uuid.UUID
	Purpose  Purpose
	EmailKey string
	Age      time.Duration // since it was queued
}

// LinkHash is the SHA-256 of the token of a link.
type LinkHash [sha256.Size]byte

// MailClaim says which mails to claim.
type MailClaim struct {
	Purposes []Purpose
	Limit    int           // most mails
	Lease    time.Duration // for which no other core gets them
	// UnconfirmedPerHour is how many mails may go to unconfirmed addresses in an hour; 0 stands for any number. Each core may
	// send up to Limit more.
	UnconfirmedPerHour int
}

// MailParams are the inputs of PrepareMail.
type MailParams struct {
	Mail      QueuedMail
	EmailHash [32]byte // SHA-256 of Mail.EmailKey
	// Token is the hash of the token in the mail, and Expires when it expires.
	Token        LinkHash
	Now, Expires time.Time
	// PerHour bounds the mails of the purpose to the address in an hour; 0 stands for any number.
	PerHour int
}

// PreparedMail is an e-mail that is ready to be rendered.
type PreparedMail struct {
	Purpose Purpose
	Email   string // recipient
}

// MailBacklog is the backlog of the outbox.
type MailBacklog struct {
	Count  int64
	Oldest time.Duration // age of the oldest; 0 if empty
}

// OutboxStore holds the outbox, shared by all cores.
type OutboxStore interface {
	// ClaimMails returns due mails, the longest due first, but those to unconfirmed addresses behind all others, and none of
	// these once too many were sent in the last hour. No other core gets them during the lease.
	ClaimMails(ctx context.Context, claim MailClaim) ([]QueuedMail, error)

	// PrepareMail determines the current recipient of a mail, stores the token that goes with it,
	// and counts it. It returns a NotFound fault if the mail is obsolete: no account has the
	// address, the address is verified by now, or too many mails of its purpose went there.
	// ForRegistration and ForAddress become ForOwner if another account has the address.
	PrepareMail(ctx context.Context, params MailParams) (PreparedMail, error)

	// DeleteMail deletes a mail from the outbox.
	DeleteMail(ctx context.Context, id uuid.UUID) error

	// DeferMail makes a mail due again after a delay.
	DeferMail(ctx context.Context, id uuid.UUID, delay time.Duration) error

	// MailBacklog returns the backlog.
	MailBacklog(ctx context.Context) (MailBacklog, error)

	// TrimMails deletes expired tokens, registrations without a mail or a token, and counts older
	// than an hour. It returns how many tokens and registrations it deleted.
	TrimMails(ctx context.Context, now time.Time) (int, error)
}

// Mail is an e-mail to send.
type Mail struct {
	ID      uuid.UUID // the same at every attempt
	Purpose Purpose
	To      string
	Token   string    // of the link, for purposes that have one
	Expires time.Time // when the token does
}

// MailSender sends e-mails.
type MailSender interface {
	// Send returns nil once the mail server has accepted an e-mail. It returns an Unavailable fault
	// when the server accepts nothing at the moment, a Refused fault when it will never accept this
	// e-mail, and other errors otherwise. No error contains an address or text of the e-mail.
	Send(ctx context.Context, mail Mail) error
}

// Outbox sends queued e-mails. One runs in every core of a site that sends e-mail. Delivery is at
// least once: a mail is sent again if the reply of the mail server is lost, or if a core dies
// before it deletes the mail. Both copies have the same Message-ID and different tokens, which both
// work. A nil *Outbox belongs to a site that sends no e-mail, and does nothing.
type Outbox struct {
	store   OutboxStore
	sender  MailSender
	config  MailConfig
	timeout time.Duration // of a delivery
	log     *slog.Logger
	now     Clock

	backlog atomic.Pointer[MailBacklog]

	// Only Run uses the rest.
	backlogAt time.Time // when the backlog was read
	retryAt   time.Time // when to try again after the server was unavailable
	backoff   time.Duration
}

// Times and sizes of the outbox.
const (
	// mailInterval is the time between two polls of the outbox.
	mailInterval = 500 * time.Millisecond
	// mailConcurrency is how many mails a core sends at a time, each on its own connection.
	mailConcurrency = 4
	// mailLeaseMargin is how much longer than a delivery the lease of a mail is.
	mailLeaseMargin = 30 * time.Second
	// mailShutdownGrace is how long a delivery may go on when the core stops.
	mailShutdownGrace = 5 * time.Second
	// backlogInterval is the time between two reads of the backlog.
	backlogInterval = 10 * time.Second
	// storeTimeout bounds a query of the store.
	storeTimeout = 10 * time.Second

	// A mail that the server rejects for now is retried at twice its age, within bounds. An
	// unavailable server is retried after a shorter backoff, which doubles.
	minMailRetryDelay = 30 * time.Second
	maxMailRetryDelay = time.Hour
	minMailBackoff    = time.Second
	maxMailBackoff    = time.Minute
)

// Outcomes of mails at this core. A failed attempt is not final.
var (
	mailsSent    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_sent_total", Help: "E-mails that the mail server has accepted."})
	mailsDropped = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_dropped_total", Help: "E-mails that were deleted unsent because they were obsolete."})
	mailsGivenUp = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_given_up_total", Help: "E-mails that were deleted unsent because the mail server rejected them, or was unavailable for too long."})
	mailsFailed  = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mail_failures_total", Help: "Failed attempts to send e-mails."})
)

// NewOutbox returns an outbox that sends nothing until Run. The timeout bounds a delivery.
func NewOutbox(store OutboxStore, sender MailSender, config MailConfig, timeout time.Duration, log *slog.Logger, now Clock) *Outbox {
	o := &Outbox{store: store, sender: sender, config: config, timeout: timeout, log: log, now: now, backoff: minMailBackoff}
	o.backlog.Store(&MailBacklog{})
	return o
}

// Run sends mails until ctx ends.
func (o *Outbox) Run(ctx context.Context) {
	if o == nil {
		return
	}
	tick := time.NewTicker(mailInterval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Now().Before(o.retryAt) {
			continue
		}
		sent, err := o.drain(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			o.log.ErrorContext(ctx, "e-mail cannot be sent, it stays queued", "error", err)
			failing = true
		case err == nil && failing && sent > 0:
			o.log.InfoContext(ctx, "e-mail is sent again")
			failing = false
		}
	}
}

// drain sends mails until none is due or an error occurs, and returns how many it processed.
func (o *Outbox) drain(ctx context.Context) (processed int, err error) {
	if err := o.refreshBacklog(ctx); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		n, err := o.sendBatch(ctx)
		processed += n
		if n == 0 || err != nil {
			return processed, err
		}
	}
	return processed, nil
}

// refreshBacklog reads the backlog every backlogInterval.
func (o *Outbox) refreshBacklog(ctx context.Context) error {
	if now := time.Now(); now.Sub(o.backlogAt) >= backlogInterval {
		o.backlogAt = now
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		backlog, err := o.store.MailBacklog(ctx)
		if err != nil {
			return err
		}
		o.backlog.Store(&backlog)
	}
	return nil
}

// sendBatch sends some mails concurrently, and returns how many. An error means that the store or
// the mail server is unavailable.
func (o *Outbox) sendBatch(ctx context.Context) (int, error) {
	mails, err := o.claim(ctx)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(mails))
	var senders sync.WaitGroup
	for i, mail := range mails {
		senders.Go(func() { errs[i] = o.send(ctx, mail) })
	}
	senders.Wait()
	for _, err := range errs {
		if err != nil {
			o.retryAt = time.Now().Add(jitter(o.backoff))
			o.backoff = min(2*o.backoff, maxMailBackoff)
			return len(mails), err
		}
	}
	if len(mails) > 0 {
		o.backoff = minMailBackoff
	}
	return len(mails), nil
}

func (o *Outbox) claim(ctx context.Context) ([]QueuedMail, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return o.store.ClaimMails(ctx, MailClaim{sendablePurposes, mailConcurrency, o.timeout + mailLeaseMargin, o.config.UnconfirmedPerHour})
}

// send tries to send a mail, and records the outcome. An error means that the store or the mail
// server is unavailable.
func (o *Outbox) send(ctx context.Context, mail QueuedMail) error {
	if mail.Age > o.config.RetryFor {
		return o.giveUp(ctx, mail, nil)
	}
	err := o.deliver(ctx, mail)
	kind := fault.KindOf(err)
	switch {
	case err == nil:
		mailsSent.Inc()
		return o.deleteMail(ctx, mail)
	case kind == fault.NotFound:
		mailsDropped.Inc()
		return o.deleteMail(ctx, mail)
	case ctx.Err() != nil:
		return o.deferMail(ctx, mail, 0) // for another core
	}
	mailsFailed.Inc()
	delay := jitter(min(max(mail.Age, minMailRetryDelay), maxMailRetryDelay))
	switch {
	case kind == fault.Refused:
		return o.giveUp(ctx, mail, err)
	case kind == fault.Unavailable:
		if deferErr := o.deferMail(ctx, mail, o.backoff); deferErr != nil {
			return deferErr
		}
		return err
	case mail.Age+delay > o.config.RetryFor:
		return o.giveUp(ctx, mail, err)
	default:
		return o.deferMail(ctx, mail, delay)
	}
}

// deliver prepares a mail and hands it to the sender.
func (o *Outbox) deliver(ctx context.Context, mail QueuedMail) error {
	ctx, cancel := o.deliveryContext(ctx)
	defer cancel()
	token := make([]byte, sha256.Size)
	_, _ = rand.Read(token) // never fails
	link := base64.RawURLEncoding.EncodeToString(token)
	now := o.now()
	expires := now.Add(o.config.Verification)
	if mail.Purpose == ForReset {
		expires = now.Add(o.config.Reset)
	}
	prepared, err := o.store.PrepareMail(ctx, MailParams{
		Mail: mail, EmailHash: sha256.Sum256([]byte(mail.EmailKey)), Token: hashToken(link), Now: now, Expires: expires, PerHour: o.config.PerHour,
	})
	if err != nil {
		return err
	}
	return o.sender.Send(ctx, Mail{ID: mail.ID, Purpose: prepared.Purpose, To: prepared.Email, Token: link, Expires: expires})
}

// deliveryContext bounds a delivery. When the core stops, the delivery may go on for a moment: if
// cut short, the mail might be sent twice.
func (o *Outbox) deliveryContext(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.timeout)
	stop := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(mailShutdownGrace, cancel)
		context.AfterFunc(bounded, func() { grace.Stop() })
	})
	return bounded, func() { stop(); cancel() }
}

// giveUp deletes a mail that was not sent.
func (o *Outbox) giveUp(ctx context.Context, mail QueuedMail, cause error) error {
	mailsGivenUp.Inc()
	o.log.WarnContext(ctx, "an e-mail is given up", "id", mail.ID, "purpose", mail.Purpose, "age", mail.Age.String(), "error", cause)
	return o.deleteMail(ctx, mail)
}

func (o *Outbox) deleteMail(ctx context.Context, mail QueuedMail) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return o.store.DeleteMail(ctx, mail.ID)
}

func (o *Outbox) deferMail(ctx context.Context, mail QueuedMail, delay time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return o.store.DeferMail(ctx, mail.ID, delay)
}

// jitter returns a random duration from d/2 to d, so that mails that failed together are not
// retried together.
func jitter(d time.Duration) time.Duration { return d/2 + mathrand.N(d/2+1) } //nolint:gosec // not a secret

// hashToken returns the hash under which a token is stored.
func hashToken(token string) LinkHash { return sha256.Sum256([]byte(token)) }

// Trim deletes expired tokens and registrations, and returns how many.
func (o *Outbox) Trim(ctx context.Context) (int, error) {
	if o == nil {
		return 0, nil
	}
	return o.store.TrimMails(ctx, o.now())
}

// Expose registers metrics of the backlog, which is the same for all cores.
func (o *Outbox) Expose(registry prometheus.Registerer) {
	if o == nil {
		return
	}
	register := promauto.With(registry)
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_core_mails_queued", Help: "E-mails in the outbox."},
		func() float64 { return float64(o.backlog.Load().Count) })
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_core_mail_lag_seconds", Help: "Age of the oldest e-mail in the outbox."},
		func() float64 { return o.backlog.Load().Oldest.Seconds() })
}
