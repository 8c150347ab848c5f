package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// MailConfig is what e-mail says, how long its links work, and how long it is
// tried.
type MailConfig struct {
	Site         string        `env:"SITE" envDefault:"Veneer" help:"the site's name in e-mail"`
	URL          string        `env:"URL" example:"https://skins.example.org" help:"address of the site's pages, as in https://skins.example.org: links in e-mail lead to /verify and /reset there, with #token= and the token behind; required with CORE_SMTP_HOST"`
	Verification time.Duration `env:"VERIFICATION_TTL" envDefault:"24h" help:"how long a link works that verifies an address or confirms a registration"`
	Reset        time.Duration `env:"RESET_TTL" envDefault:"1h" help:"how long a link works that resets a password"`
	PerHour      int           `env:"PER_HOUR" envDefault:"5" help:"most e-mails of one kind to an address in an hour, from all cores; 0 for any number"`
	RetryFor     time.Duration `env:"RETRY_FOR" envDefault:"24h" help:"how long an e-mail is tried again that the mail server does not take"`
}

// Check returns an error that names a setting which makes no sense. That there is no URL
// makes sense where no e-mail is sent.
func (c MailConfig) Check() error {
	target, ok := config.ParseURL(c.URL)
	switch {
	case c.URL != "" && (!ok || target.RawQuery != "" || target.Fragment != "" || !isPrintable(c.URL) || strings.Contains(c.URL, " ")):
		return fmt.Errorf("URL is %s, but must look like https://skins.example.org", config.QuoteRedacted(c.URL))
	case c.Site == "" || !isPrintable(c.Site) || utf8.RuneCountInString(c.Site) > maxName:
		return fmt.Errorf("SITE is %q, but must have 1 to %d characters, and no control characters", c.Site, maxName)
	case c.Verification < time.Minute:
		return fmt.Errorf("VERIFICATION_TTL is %s, but must be at least 1m", c.Verification)
	case c.Reset < time.Minute:
		return fmt.Errorf("RESET_TTL is %s, but must be at least 1m", c.Reset)
	case c.PerHour < 0:
		return fmt.Errorf("PER_HOUR is %d, but must not be negative", c.PerHour)
	case c.RetryFor < time.Minute:
		return fmt.Errorf("RETRY_FOR is %s, but must be at least 1m", c.RetryFor)
	default:
		return nil
	}
}

// Purpose is what an e-mail is for.
type Purpose string

// The purposes. All but ForOwner stand in the outbox. All but the last three carry a
// token.
const (
	ForVerification Purpose = "verification" // of the address that a user has
	ForAddress      Purpose = "address"      // that a user wants to have
	ForReset        Purpose = "reset"        // of a forgotten password
	ForRegistration Purpose = "registration" // which comes to life by the link
	ForChange       Purpose = "change"       // tells the address that a user had before
	ForPassword     Purpose = "password"     // tells a user that their password is another
	ForOwner        Purpose = "owner"        // tells who has an address that somebody else wants for an account
)

// sendablePurposes are the purposes that this release can write a mail for. While cores are
// replaced by those of a later release there may be others in the outbox.
var sendablePurposes = []Purpose{ForVerification, ForAddress, ForReset, ForRegistration, ForChange, ForPassword}

// QueuedMail is an e-mail in the outbox, at an attempt to send it.
type QueuedMail struct {
	ID       uuid.UUID
	Purpose  Purpose
	EmailKey string
	Age      time.Duration // since it was queued
}

// LinkHash is the SHA-256 of the token in a link.
type LinkHash [sha256.Size]byte

// MailParams is what an e-mail needs to be written.
type MailParams struct {
	Mail      QueuedMail
	EmailHash [32]byte // SHA-256 of Mail.EmailKey
	// Token is the hash of the token that the mail will carry, and Expires when it
	// works no longer.
	Token        LinkHash
	Now, Expires time.Time
	// PerHour is how many mails of the purpose the address may get in an hour; 0
	// stands for any number.
	PerHour int
}

// PreparedMail is an e-mail that is about to be written.
type PreparedMail struct {
	Purpose Purpose
	Email   string // where it goes
}

// MailBacklog is what waits in the outbox.
type MailBacklog struct {
	Count  int64
	Oldest time.Duration // how long the oldest has waited; 0 without any
}

// OutboxStore keeps what is to be mailed, for all cores.
type OutboxStore interface {
	// ClaimMails returns up to so many mails for some purposes that are due, the longest
	// due first. For the lease no other core gets them.
	ClaimMails(ctx context.Context, purposes []Purpose, limit int, lease time.Duration) ([]QueuedMail, error)

	// PrepareMail finds out who is to have a mail at this moment, remembers the token
	// that goes with it, and counts it. It returns a NotFound fault when nobody is to
	// have it: no account has the address, it is verified by now, or too many such
	// mails went there. What was ForRegistration or ForAddress is ForOwner when another
	// account has the address.
	PrepareMail(ctx context.Context, params MailParams) (PreparedMail, error)

	// DeleteMail takes a mail out of the outbox.
	DeleteMail(ctx context.Context, id uuid.UUID) error

	// DeferMail lets a mail be due again after a while.
	DeferMail(ctx context.Context, id uuid.UUID, delay time.Duration) error

	// MailBacklog returns what waits.
	MailBacklog(ctx context.Context) (MailBacklog, error)

	// TrimMails deletes tokens that have expired at a moment, registrations that wait
	// for nothing any more and what counts no longer, and returns how many tokens and
	// registrations.
	TrimMails(ctx context.Context, now time.Time) (int, error)
}

// Mailer takes e-mails to a mail server.
type Mailer interface {
	// Deliver returns nil once the server is answerable for a letter. It returns an
	// Unavailable fault when the server takes nothing from us at the moment, a Refused
	// fault when it will never take this letter, and else another error. No error
	// tells an address or what the letter says.
	Deliver(ctx context.Context, msg Message) error
}

// Outbox sends what waits to be mailed. One runs in every core of a site that
// sends e-mail. A mail is sent at least once: it comes twice when the answer of
// the mail server is lost, or a core dies at that moment, both times with the same
// Message-ID but another token; both work. A nil *Outbox is of a site that sends no
// e-mail, and does nothing.
type Outbox struct {
	store   OutboxStore
	mailer  Mailer
	config  MailConfig
	timeout time.Duration // of a delivery
	log     *slog.Logger
	now     Clock

	backlog atomic.Pointer[MailBacklog]

	// The rest belongs to Run.
	backlogAt time.Time // when the backlog was
	retryAt   time.Time // when the server is tried again after it took nothing
	backoff   time.Duration
}

// Times and sizes of the outbox.
const (
	// mailInterval is the time between two looks into the outbox.
	mailInterval = 500 * time.Millisecond
	// mailConcurrency is how many mails a core sends at a time, each on a connection of
	// its own.
	mailConcurrency = 4
	// mailLeaseMargin is how much longer than a delivery a core holds a mail.
	mailLeaseMargin = 30 * time.Second
	// mailShutdownGrace is how long a delivery may go on when the core stops.
	mailShutdownGrace = 5 * time.Second
	// backlogInterval is the time between two looks at how much waits.
	backlogInterval = 10 * time.Second
	// storeTimeout bounds a word with the store.
	storeTimeout = 10 * time.Second

	// A mail that the server does not take now is tried again when it has waited twice
	// as long, within bounds. A server that takes nothing is left alone for a shorter
	// while, which doubles.
	minMailRetryDelay = 30 * time.Second
	maxMailRetryDelay = time.Hour
	minMailBackoff    = time.Second
	maxMailBackoff    = time.Minute
)

// What became of mails at this core. An attempt that fails is no end.
var (
	mailsSent    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_sent_total", Help: "E-mails that the mail server has taken."})
	mailsDropped = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_dropped_total", Help: "E-mails that were deleted unsent, since what they were about was over."})
	mailsGivenUp = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mails_given_up_total", Help: "E-mails that the mail server has not taken for too long, or will not take."})
	mailsFailed  = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_mail_failures_total", Help: "Attempts to send e-mails that failed."})
)

// NewOutbox returns an outbox that sends nothing yet: Run does. A delivery may
// take as long as the timeout.
func NewOutbox(store OutboxStore, mailer Mailer, config MailConfig, timeout time.Duration, log *slog.Logger, now Clock) *Outbox {
	o := &Outbox{store: store, mailer: mailer, config: config, timeout: timeout, log: log, now: now, backoff: minMailBackoff}
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
			o.log.ErrorContext(ctx, "e-mail cannot be sent, it waits", "error", err)
			failing = true
		case err == nil && failing && sent > 0:
			o.log.InfoContext(ctx, "e-mail is sent again")
			failing = false
		}
	}
}

// drain sends what is due, as long as all goes well, and returns how many mails it
// dealt with.
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

// refreshBacklog finds out now and then how much waits.
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

// sendBatch sends some mails at once, and returns how many. An error says that the
// store or the mail server is away.
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
	return o.store.ClaimMails(ctx, sendablePurposes, mailConcurrency, o.timeout+mailLeaseMargin)
}

// send tries to send a mail, and takes note of what came of it. It returns an error
// when the store or the mail server is away.
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

// deliver writes a mail and hands it to the postman.
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
	return o.mailer.Deliver(ctx, o.config.message(mail.ID, prepared, link, expires))
}

// deliveryContext bounds a delivery. When the core stops it may go on for a moment: cut
// short, it would perhaps come twice.
func (o *Outbox) deliveryContext(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.timeout)
	stop := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(mailShutdownGrace, cancel)
		context.AfterFunc(bounded, func() { grace.Stop() })
	})
	return bounded, func() { stop(); cancel() }
}

// giveUp takes a mail out of the outbox that was not sent.
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

// jitter returns a time between half of d and d: what failed together is not tried
// again together.
func jitter(d time.Duration) time.Duration { return d/2 + mathrand.N(d/2+1) } //nolint:gosec // not a secret

// hashToken returns what is kept of a token.
func hashToken(token string) LinkHash { return sha256.Sum256([]byte(token)) }

// Trim deletes what mails have left behind and nobody needs any more, and returns
// how many tokens and registrations that were.
func (o *Outbox) Trim(ctx context.Context) (int, error) {
	if o == nil {
		return 0, nil
	}
	return o.store.TrimMails(ctx, o.now())
}

// Expose registers metrics of what waits in the outbox, which is the same for all cores.
func (o *Outbox) Expose(registry prometheus.Registerer) {
	if o == nil {
		return
	}
	register := promauto.With(registry)
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_core_mails_queued", Help: "E-mails that wait to be sent."},
		func() float64 { return float64(o.backlog.Load().Count) })
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_core_mail_lag_seconds", Help: "Time that the oldest e-mail has been waiting."},
		func() float64 { return o.backlog.Load().Oldest.Seconds() })
}
