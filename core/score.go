package core

import (
	"context"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Scores is what the site rewards and charges; by default nothing.
//
// A reward is never taken back. It is for more than there ever was instead: more
// textures than their uploader ever had, or more closets that hold a texture than
// ever did. So nobody earns by doing a thing again and again, and nobody owes what
// they have spent by the time somebody else changes their mind.
type Scores struct {
	Registration      int64 `env:"REGISTRATION" envDefault:"0" help:"score that a new user has"`
	Player            int64 `env:"PLAYER" envDefault:"0" help:"score that adding a player costs; the one that is named at a registration is free"`
	ClosetItem        int64 `env:"CLOSET_ITEM" envDefault:"0" help:"score that adding a closet item costs; an upload adds its own for nothing"`
	TextureKiB        int64 `env:"TEXTURE_KIB" envDefault:"0" help:"score that a public texture costs for each KiB of its file, rounded up"`
	PrivateTextureKiB int64 `env:"PRIVATE_TEXTURE_KIB" envDefault:"0" help:"score that a private texture costs for each KiB of its file, rounded up"`

	UploadReward int64 `env:"UPLOAD_REWARD" envDefault:"0" help:"score that an upload earns, if its uploader never had as many textures before"`
	LikeReward   int64 `env:"LIKE_REWARD" envDefault:"0" help:"score that a texture earns its uploader when somebody else puts it into their closet, if it never was in as many before"`
	SignReward   int64 `env:"SIGN_REWARD" envDefault:"0" help:"score that a daily sign-in earns"`

	RefundPlayer     bool `env:"REFUND_PLAYER" envDefault:"false" help:"give back what a player cost when it is deleted; holds for players that are added while it is set"`
	RefundClosetItem bool `env:"REFUND_CLOSET_ITEM" envDefault:"false" help:"give back what a closet item cost when it is removed, or its texture goes; holds for items that are added while it is set"`
	RefundTexture    bool `env:"REFUND_TEXTURE" envDefault:"false" help:"give back what a texture cost when it is deleted, or costs less as a public one; holds for textures that are uploaded while it is set"`

	Retention time.Duration `env:"RETENTION" envDefault:"8760h" help:"how long changes of scores are listed one by one; a user's older ones become one; 0s for ever"`
}

// maxAmount bounds costs and rewards, far beyond any that make sense, so that
// scores stay within what JSON's readers count with.
const maxAmount = 1_000_000

// Check returns an error that names a score which makes no sense.
func (s Scores) Check() error {
	for name, amount := range map[string]int64{
		"REGISTRATION": s.Registration, "PLAYER": s.Player, "CLOSET_ITEM": s.ClosetItem,
		"TEXTURE_KIB": s.TextureKiB, "PRIVATE_TEXTURE_KIB": s.PrivateTextureKiB,
		"UPLOAD_REWARD": s.UploadReward, "LIKE_REWARD": s.LikeReward, "SIGN_REWARD": s.SignReward,
	} {
		if amount < 0 || amount > maxAmount {
			return fmt.Errorf("%s is %d, but must be 0 to %d", name, amount, maxAmount)
		}
	}
	if s.Retention < 0 {
		return fmt.Errorf("RETENTION is %s, but must not be negative", s.Retention)
	}
	return nil
}

// TextureRate returns what a texture costs for each KiB.
func (s Scores) TextureRate(public bool) int64 {
	if public {
		return s.TextureKiB
	}
	return s.PrivateTextureKiB
}

// Pricing are what a user must satisfy to get one thing more, room within the quotas
// and a score that covers the cost, which is charged; and what comes of it.
type Pricing struct {
	Quotas Quotas
	Cost   int64
	// Refund says whether the cost is given back when the thing goes.
	Refund bool
	// Reward is for who uploads a texture, or for the uploader of one that somebody
	// else keeps.
	Reward int64
}

// Free reports whether nobody's score changes.
func (t Pricing) Free() bool { return t.Cost == 0 && t.Reward == 0 }

// ErrScoreTooLow returns the fault of a user whose score does not cover a cost.
func ErrScoreTooLow(cost int64) error {
	return fault.New(fault.ScoreTooLow, "This costs a score of %d, and you have less.", cost)
}

// ScoreChange is one change of a user's score.
type ScoreChange struct {
	At      time.Time
	Amount  int64  // negative for a charge
	Balance int64  // the score from then on
	Reason  string // one word, as upload
	Subject string // what it was about, as texture:7; empty for nothing
}

// ScoreQuery says which changes of a score are wanted.
type ScoreQuery struct {
	Page    int // from 1
	PerPage int
}

// ScorePage is some changes of a score, of Total that there are.
type ScorePage struct {
	Changes []ScoreChange
	Total   int
}

// SignIn is what a daily sign-in came to.
type SignIn struct {
	Gained int64
	Score  int64
	Next   time.Time // from when on the next one is possible
}

// ErrAlreadySigned returns the fault of a user who has signed in for the day already.
// Its data says from when on the next time is possible.
func ErrAlreadySigned(next time.Time) error {
	text := next.UTC().Format(time.DateTime)
	return &fault.Error{
		Kind: fault.Refused, Message: "You have signed in for today already. The next time is possible from " + text + " UTC on.",
		Data: map[string]string{"next_sign_at": text},
	}
}

// ScoreStore keeps the ledger: every change of every score, with the change of
// the score itself, so that a user's score is the sum of their changes.
type ScoreStore interface {
	// ScoreChanges lists changes of the score of a ticket's user, the newest first.
	ScoreChanges(ctx context.Context, token VerifiedToken, query ScoreQuery) (ScorePage, error)

	// Sign notes that a user signs in for the day, in UTC, and rewards it. It returns
	// ErrAlreadySigned when they did so already, by this core's clock or by another's.
	Sign(ctx context.Context, user UserID, now time.Time, reward int64) (SignIn, error)

	// TrimScoreChanges puts one change in the place of all that a user has from before
	// a time, so that the sum stays, and returns how many went.
	TrimScoreChanges(ctx context.Context, before time.Time) (int, error)
}

// Ledger is how scores came to be what they are.
type Ledger struct {
	store     ScoreStore
	reward    int64
	retention time.Duration
	now       Clock
}

// NewLedger returns the ledger kept in a store.
func NewLedger(store ScoreStore, scores Scores, now Clock) *Ledger {
	return &Ledger{store: store, reward: scores.SignReward, retention: scores.Retention, now: now}
}

// DefaultScoreChanges is how many changes of a score are on a page unless the
// reader says otherwise.
const DefaultScoreChanges = 20

// List returns a page of the changes of the score of a ticket's user, the newest
// first. A page past the end is empty.
func (l *Ledger) List(ctx context.Context, token VerifiedToken, query ScoreQuery) (ScorePage, error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, maxPage)
	if err := wrong.fault(); err != nil {
		return ScorePage{}, err
	}
	return l.store.ScoreChanges(ctx, token, query)
}

// Sign signs the caller in for the day, in UTC, which may be rewarded. It returns
// ErrAlreadySigned when they did so already.
func (l *Ledger) Sign(ctx context.Context, caller Caller) (SignIn, error) {
	return l.store.Sign(ctx, caller.ID, l.now().UTC(), l.reward)
}

// Trim puts one change in the place of all that a user has and that have been kept
// long enough, and returns how many went.
func (l *Ledger) Trim(ctx context.Context) (int, error) {
	if l.retention == 0 {
		return 0, nil
	}
	return l.store.TrimScoreChanges(ctx, l.now().Add(-l.retention))
}
