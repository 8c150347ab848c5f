package core

import (
	"context"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Scores configures rewards and costs; all are 0 by default.
//
// A reward is never taken back. It is paid for a new maximum instead: more textures than their
// uploader ever had, or more closets that hold a texture than ever did. So repeating an action
// earns nothing, and no user owes a score already spent because another user changed their mind.
type Scores struct {
	Registration      int64 `env:"REGISTRATION" envDefault:"0" help:"score of a new user"`
	Player            int64 `env:"PLAYER" envDefault:"0" help:"score that adding a player costs; the player of a registration is free"`
	ClosetItem        int64 `env:"CLOSET_ITEM" envDefault:"0" help:"score that adding a closet item costs; the item of an upload is free"`
	TextureKiB        int64 `env:"TEXTURE_KIB" envDefault:"0" help:"score that a public texture costs for each KiB of its file, rounded up"`
	PrivateTextureKiB int64 `env:"PRIVATE_TEXTURE_KIB" envDefault:"0" help:"score that a private texture costs for each KiB of its file, rounded up"`

	UploadReward int64 `env:"UPLOAD_REWARD" envDefault:"0" help:"score that an upload earns, if its uploader never had as many textures before"`
	LikeReward   int64 `env:"LIKE_REWARD" envDefault:"0" help:"score that a texture earns its uploader when another user adds it to their closet, if it never was in as many closets before"`
	SignReward   int64 `env:"SIGN_REWARD" envDefault:"0" help:"score that a daily sign-in earns"`

	RefundPlayer     bool `env:"REFUND_PLAYER" envDefault:"false" help:"refund the cost of a player when it is deleted; for players added while this is set"`
	RefundClosetItem bool `env:"REFUND_CLOSET_ITEM" envDefault:"false" help:"refund the cost of a closet item when it or its texture is deleted; for items added while this is set"`
	RefundTexture    bool `env:"REFUND_TEXTURE" envDefault:"false" help:"refund the cost of a texture when it is deleted, or the difference when it costs less as a public one; for textures uploaded while this is set"`

	Retention time.Duration `env:"RETENTION" envDefault:"8760h" help:"how long changes of scores are kept one by one; the older ones of a user are merged into one; 0s: forever"`
}

// maxAmount bounds costs and rewards far beyond useful ones, so that scores stay within the
// integers of JSON readers.
const maxAmount = 1_000_000

// Check returns an error that names an invalid score.
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

// TextureRate returns the cost of a texture for each KiB.
func (s Scores) TextureRate(public bool) int64 {
	if public {
		return s.TextureKiB
	}
	return s.PrivateTextureKiB
}

// textureCost returns the cost of a texture with a file of so many bytes.
func (s Scores) textureCost(bytes int, public bool) int64 {
	return s.TextureRate(public) * int64(kib(bytes))
}

// Pricing is what adding one thing requires and changes: the quotas must leave room for it, the
// score must cover the cost, which is charged, and a reward may be paid.
type Pricing struct {
	Quotas Quotas
	Cost   int64
	// Refund reports whether the cost is refunded when the thing is deleted.
	Refund bool
	// Reward is paid to the uploader: for an upload, or when another user adds the texture to a
	// closet.
	Reward int64
}

// Free reports whether no score changes.
func (t Pricing) Free() bool { return t.Cost == 0 && t.Reward == 0 }

// ErrScoreTooLow returns the fault of a user with a score below a cost.
func ErrScoreTooLow(cost int64) error {
	return fault.New(fault.ScoreTooLow, "This costs a score of %d, and you have less.", cost)
}

// ScoreChange is one change of a user's score.
type ScoreChange struct {
	At      time.Time
	Amount  int64  // negative for a charge
	Balance int64  // the score after the change
	Reason  string // one word, such as upload
	Subject string // such as texture:7; empty for none
}

// ScoreQuery selects changes of a score.
type ScoreQuery struct {
	Page    int // from 1
	PerPage int
}

// ScorePage is a page of the Total changes of a score.
type ScorePage struct {
	Changes []ScoreChange
	Total   int
}

// SignIn is the result of a daily sign-in.
type SignIn struct {
	Gained int64
	Score  int64
	Next   time.Time // when the next one is possible
}

// ErrAlreadySigned returns the fault of a second daily sign-in. Its data holds the time from which
// the next one is possible.
func ErrAlreadySigned(next time.Time) error {
	text := next.UTC().Format(time.DateTime)
	return &fault.Error{
		Kind: fault.Refused, Message: "You have signed in for today already. The next time is possible from " + text + " UTC on.",
		Data: map[string]string{"next_sign_at": text},
	}
}

// ScoreStore holds the ledger of scores. A score changes together with its ledger, so it is the sum
// of its changes.
type ScoreStore interface {
	// ScoreChanges lists changes of the score of the token's user, the newest first.
	ScoreChanges(ctx context.Context, token VerifiedToken, query ScoreQuery) (ScorePage, error)

	// Sign records the daily sign-in of a user, by the day in UTC, and rewards it. It returns
	// ErrAlreadySigned for a second one, by the clock of this core or another.
	Sign(ctx context.Context, user UserID, now time.Time, reward int64) (SignIn, error)

	// TrimScoreChanges merges the changes of each user from before a time into one with the same
	// sum, and returns how many it removed.
	TrimScoreChanges(ctx context.Context, before time.Time) (int, error)
}

// Ledger is the history of scores.
type Ledger struct {
	store     ScoreStore
	reward    int64
	retention time.Duration
	now       Clock
}

// NewLedger returns the ledger of a store.
func NewLedger(store ScoreStore, scores Scores, now Clock) *Ledger {
	return &Ledger{store: store, reward: scores.SignReward, retention: scores.Retention, now: now}
}

// DefaultScoreChanges is the default number of changes on a page.
const DefaultScoreChanges = 20

// List returns a page of the changes of the score of the token's user, the newest first. A page
// past the end is empty.
func (l *Ledger) List(ctx context.Context, token VerifiedToken, query ScoreQuery) (ScorePage, error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, maxPage)
	if err := wrong.fault(); err != nil {
		return ScorePage{}, err
	}
	return l.store.ScoreChanges(ctx, token, query)
}

// Sign records the daily sign-in of the caller, by the day in UTC, which may be rewarded. It
// returns ErrAlreadySigned for a second one.
func (l *Ledger) Sign(ctx context.Context, caller Caller) (SignIn, error) {
	return l.store.Sign(ctx, caller.ID, l.now().UTC(), l.reward)
}

// Trim merges the changes of each user that are older than the retention into one, and returns how
// many it removed.
func (l *Ledger) Trim(ctx context.Context) (int, error) {
	if l.retention == 0 {
		return 0, nil
	}
	return l.store.TrimScoreChanges(ctx, l.now().Add(-l.retention))
}
