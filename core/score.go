package core

import (
	"context"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// ScorePrices configures rewards and costs; all are 0 by default. Their bound is far beyond useful ones,
// and keeps scores within the integers of JSON readers.
//
// A reward is never taken back. It is paid for a new maximum instead: more textures than their
// uploader ever had, or more closets that hold a texture than ever did. So repeating an action
// earns nothing, and no user owes a score already spent because another user changed their mind.
// Its settings are CORE_SCORE_REGISTRATION, CORE_SCORE_PLAYER, CORE_SCORE_CLOSET_ITEM,
// CORE_SCORE_TEXTURE_KIB, CORE_SCORE_PRIVATE_TEXTURE_KIB, CORE_SCORE_UPLOAD_REWARD,
// CORE_SCORE_LIKE_REWARD, CORE_SCORE_SIGN_REWARD, CORE_SCORE_REFUND_PLAYER,
// CORE_SCORE_REFUND_CLOSET_ITEM, CORE_SCORE_REFUND_TEXTURE, CORE_SCORE_RETENTION.
type ScorePrices struct {
	Registration      int64 `env:"REGISTRATION" envDefault:"0" min:"0" max:"1000000" help:"score of a new user"`
	Player            int64 `env:"PLAYER" envDefault:"0" min:"0" max:"1000000" help:"score that adding a player costs; the player of a registration is free"`
	ClosetItem        int64 `env:"CLOSET_ITEM" envDefault:"0" min:"0" max:"1000000" help:"score that adding a closet item costs; the item of an upload is free"`
	TextureKiB        int64 `env:"TEXTURE_KIB" envDefault:"0" min:"0" max:"1000000" help:"score that a public texture costs for each KiB of its file, rounded up"`
	PrivateTextureKiB int64 `env:"PRIVATE_TEXTURE_KIB" envDefault:"0" min:"0" max:"1000000" help:"score that a private texture costs for each KiB of its file, rounded up"`

	UploadReward int64 `env:"UPLOAD_REWARD" envDefault:"0" min:"0" max:"1000000" help:"score that an upload earns, if its uploader never had as many textures before"`
	LikeReward   int64 `env:"LIKE_REWARD" envDefault:"0" min:"0" max:"1000000" help:"score that a texture earns its uploader when another user adds it to their closet, if it never was in as many closets before"`
	SignReward   int64 `env:"SIGN_REWARD" envDefault:"0" min:"0" max:"1000000" help:"score that a daily sign-in earns"`

	RefundPlayer     bool `env:"REFUND_PLAYER" envDefault:"false" help:"refund the cost of a player when it is deleted; for players added while this is set"`
	RefundClosetItem bool `env:"REFUND_CLOSET_ITEM" envDefault:"false" help:"refund the cost of a closet item when it or its texture is deleted; for items added while this is set"`
	RefundTexture    bool `env:"REFUND_TEXTURE" envDefault:"false" help:"refund the cost of a texture when it is deleted, or the difference when it costs less as a public one; for textures uploaded while this is set"`

	Retention time.Duration `env:"RETENTION" envDefault:"8760h" min:"0s" help:"how long changes of scores are kept one by one; the older ones of a user are merged into one; 0s: forever"`
}

// TextureRate returns the cost of a texture for each KiB.
func (p ScorePrices) TextureRate(public bool) int64 {
	if public {
		return p.TextureKiB
	}
	return p.PrivateTextureKiB
}

// textureCost returns the cost of a texture with a file of this size.
func (p ScorePrices) textureCost(bytes int, public bool) int64 {
	return p.TextureRate(public) * int64(kib(bytes))
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
func (p Pricing) Free() bool { return p.Cost == 0 && p.Reward == 0 }

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

// ScoreStore holds scores and their changes. Both are written together, so a score is the sum
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

// Scores is the history of scores.
type Scores struct {
	store     ScoreStore
	reward    int64
	retention time.Duration
	now       Clock
}

// NewScores returns the scores of a store.
func NewScores(store ScoreStore, prices ScorePrices, now Clock) *Scores {
	return &Scores{store: store, reward: prices.SignReward, retention: prices.Retention, now: now}
}

// DefaultScoreChanges is the default number of changes on a page.
const DefaultScoreChanges = 20

// List returns a page of the changes of the score of the token's user, the newest first. A page
// past the end is empty.
func (s *Scores) List(ctx context.Context, token VerifiedToken, query ScoreQuery) (ScorePage, error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, maxPage)
	if err := wrong.fault(); err != nil {
		return ScorePage{}, err
	}
	return s.store.ScoreChanges(ctx, token, query)
}

// Sign records the daily sign-in of the caller, by the day in UTC, which may be rewarded. It
// returns ErrAlreadySigned for a second one.
func (s *Scores) Sign(ctx context.Context, caller Caller) (SignIn, error) {
	return s.store.Sign(ctx, caller.ID, s.now().UTC(), s.reward)
}

// Trim merges the changes of each user that are older than the retention into one, and returns how
// many it removed.
func (s *Scores) Trim(ctx context.Context) (int, error) {
	if s.retention == 0 {
		return 0, nil
	}
	return s.store.TrimScoreChanges(ctx, s.now().Add(-s.retention))
}
