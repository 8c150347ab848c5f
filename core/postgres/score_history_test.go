package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// event is a call that may change scores, with its prices.
type event struct {
	kind    string
	word    string // a unique name
	user    core.UserID
	texture core.TextureID
	player  core.PlayerID
	pricing core.Pricing
	scores  core.ScorePrices // prices of a change of visibility
	amount  int64
	day     int
	public  bool
}

// entities are the users, textures and players of a history.
type entities struct {
	mu       sync.Mutex
	words    int
	users    []core.UserID
	textures []core.TextureID
	players  []core.PlayerID
}

// pick returns one of the last six, so that events often hit the same ones, or the zero value
// if there is none.
func pick[T any](random *rand.Rand, some []T) (one T) {
	some = some[max(0, len(some)-6):]
	if len(some) > 0 {
		one = some[random.IntN(len(some))]
	}
	return one
}

// eventKinds are the kinds of events; repeated ones are more frequent.
var eventKinds = strings.Split("register register upload upload upload like like like like like like like like unlike unlike unlike unlike unlike "+
	"add-player add-player delete-player sign charge charge move move delete-texture delete-user trim "+
	"move-by move-by score-by like-by unlike-by move-player-by delete-player-by delete-texture-by delete-user-by", " ")

// randomEvent returns a random event.
func (e *entities) randomEvent(random *rand.Rand) event {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.words++
	amount := func(most int64) int64 { return max(0, random.Int64N(2*most)-most+1) } // often 0
	return event{
		kind: eventKinds[random.IntN(len(eventKinds))],
		word: fmt.Sprintf("w%d", e.words),
		user: pick(random, e.users), texture: pick(random, e.textures), player: pick(random, e.players),
		pricing: core.Pricing{Cost: amount(20), Refund: random.IntN(2) == 0, Reward: amount(10)},
		scores:  core.ScorePrices{TextureKiB: amount(10), PrivateTextureKiB: amount(20)},
		amount:  random.Int64N(60) - 40, day: random.IntN(10), public: random.IntN(3) > 0,
	}
}

// textureKiB is the size of all textures here.
const textureKiB = 3

// scoreHarness runs events against the database.
type scoreHarness struct {
	store
	entities *entities
	admin    core.Actor // without score, textures or players
}

func newScoreHarness(t *testing.T) scoreHarness {
	t.Helper()
	db := open(t)
	return scoreHarness{db, new(entities), addAdministrator(t, db, "chief", core.SuperAdministrator)}
}

// keep records the id of what an event added.
func keep[T any](e *entities, all *[]T, id T, err error) error {
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		*all = append(*all, id)
	}
	return err
}

// apply runs an event, and returns the id of what it added.
func (s scoreHarness) apply(ctx context.Context, e event) (id int64, err error) {
	c := s.entities
	switch e.kind {
	case "register":
		user, err := s.CreateUser(ctx, core.Registrant, core.NewUser{Email: e.word, EmailKey: e.word, Nickname: e.word, PasswordHash: "x", Score: e.pricing.Cost})
		return int64(user.ID), keep(c, &c.users, user.ID, err)
	case "upload":
		fresh := texture(e.user, skin.Classic, e.word, e.public)
		fresh.Bytes = textureKiB << 10
		added, err := s.AddTexture(ctx, fresh, e.pricing, putOK)
		return int64(added.ID), keep(c, &c.textures, added.ID, err)
	case "add-player":
		added, err := s.CreatePlayer(ctx, e.user, player(e.word), e.pricing)
		return int64(added.ID), keep(c, &c.players, added.ID, err)
	case "like":
		return 0, s.AddClosetItem(ctx, as(e.user), e.user, e.texture, "N", e.pricing)
	case "unlike":
		return 0, s.RemoveClosetItem(ctx, as(e.user), e.user, e.texture)
	case "delete-player":
		return 0, s.DeletePlayer(ctx, as(e.user), e.player)
	case "sign":
		return 0, errOf(s.Sign(ctx, e.user, time.Date(2031, 1, 1+e.day, e.day, 0, 0, 0, time.UTC), e.pricing.Reward))
	case "charge":
		return 0, s.Charge(ctx, e.user, e.amount)
	case "move":
		return 0, errOf(s.ChangeTexture(ctx, anyOwner, e.texture, core.TextureChange{Public: &e.public}, e.scores))
	case "move-by":
		return 0, errOf(s.ChangeTexture(ctx, s.admin, e.texture, core.TextureChange{Public: &e.public}, e.scores))
	case "like-by":
		return 0, s.AddClosetItem(ctx, s.admin, e.user, e.texture, "N", e.pricing)
	case "unlike-by":
		return 0, s.RemoveClosetItem(ctx, s.admin, e.user, e.texture)
	case "move-player-by":
		return 0, errOf(s.MovePlayer(ctx, s.admin, e.player, e.user, core.Quotas{}))
	case "delete-player-by":
		return 0, s.DeletePlayer(ctx, s.admin, e.player)
	case "score-by":
		return 0, errOf(s.SetScore(ctx, s.admin, e.user, e.pricing.Cost))
	case "delete-texture":
		return 0, s.DeleteTexture(ctx, anyOwner, e.texture, false)
	case "delete-texture-by":
		return 0, s.DeleteTexture(ctx, s.admin, e.texture, false)
	case "delete-user-by":
		return 0, s.DeleteUser(ctx, s.admin, byID(e.user))
	case "delete-user":
		return 0, s.DeleteUser(ctx, as(e.user), credentialsOf(core.User{ID: e.user}))
	default: // trim
		return 0, errOf(s.TrimScoreChanges(ctx, time.Now().Add(time.Hour)))
	}
}

// model predicts the scores of a history.
type model struct {
	users    map[core.UserID]*modelUser
	players  map[core.PlayerID]modelPlayer
	textures map[core.TextureID]*modelTexture
}

type modelUser struct {
	score    int64
	rewarded int // maximum number of textures while uploads were rewarded
	signed   int // the day after the last sign-in
}

type modelPlayer struct {
	owner  core.UserID
	refund int64
}

type modelTexture struct {
	uploader   core.UserID
	public     bool
	paid       int64
	refundable bool
	rewarded   int                   // maximum number of likes by others while likes were rewarded
	closets    map[core.UserID]int64 // refund of each item
}

// refund returns what is refunded for a thing bought at these prices.
func refund(pricing core.Pricing) int64 {
	if pricing.Refund {
		return pricing.Cost
	}
	return 0
}

// earn adds to the score of a user, unless the user is deleted.
func (m model) earn(user core.UserID, amount int64) {
	if u := m.users[user]; u != nil {
		u.score += amount
	}
}

// predict returns the kind of fault that an event should cause, nil for none, and a function
// that applies its effect to the model.
func (m model) predict(e event) (refusal any, effect func(id int64)) {
	switch e.kind {
	case "register":
		return nil, func(id int64) { m.users[core.UserID(id)] = &modelUser{score: e.pricing.Cost} }
	case "unlike":
		return m.unlike(e)
	case "delete-player":
		return m.deletePlayer(e)
	case "move":
		return m.move(e)
	case "move-by":
		e.scores = core.ScorePrices{}
		return m.move(e)
	case "delete-texture", "delete-texture-by":
		return m.deleteTexture(e.texture)
	case "score-by", "delete-user-by", "like-by", "unlike-by", "move-player-by", "delete-player-by":
		return m.byAdministrator(e)
	case "trim":
		return nil, func(int64) {}
	}
	user := m.users[e.user]
	switch {
	case e.kind == "charge" && e.amount == 0:
		return nil, func(int64) {}
	case user == nil:
		return fault.Unauthenticated, nil
	}
	switch e.kind {
	case "delete-user":
		return nil, func(int64) { m.deleteUser(e.user) }
	case "charge":
		if user.score < e.amount {
			return fault.ScoreTooLow, nil
		}
		return nil, func(int64) { user.score -= e.amount }
	case "sign":
		if e.day < user.signed {
			return fault.Refused, nil
		}
		return nil, func(int64) { user.score, user.signed = user.score+e.pricing.Reward, e.day+1 }
	case "like":
		return m.like(e)
	}
	if user.score < e.pricing.Cost {
		return fault.ScoreTooLow, nil
	}
	if e.kind == "upload" {
		return nil, func(id int64) { m.upload(e, core.TextureID(id)) }
	}
	return nil, func(id int64) {
		user.score -= e.pricing.Cost
		m.players[core.PlayerID(id)] = modelPlayer{e.user, refund(e.pricing)}
	}
}

func (m model) byAdministrator(e event) (refusal any, effect func(id int64)) {
	user, p := m.users[e.user], m.players[e.player]
	ofPlayer := strings.Contains(e.kind, "player")
	switch {
	case ofPlayer && p.owner == 0, user == nil && e.kind != "delete-player-by":
		return fault.NotFound, nil
	}
	switch e.kind {
	case "like-by":
		return m.like(e)
	case "unlike-by":
		return m.unlike(e)
	case "move-player-by":
		if p.owner == e.user {
			return nil, func(int64) {}
		}
		return nil, func(int64) { m.players[e.player] = modelPlayer{owner: e.user} }
	case "delete-player-by":
		return nil, func(int64) {
			delete(m.players, e.player)
			m.earn(p.owner, p.refund)
		}
	case "score-by":
		return nil, func(int64) { user.score = e.pricing.Cost }
	default:
		return nil, func(int64) { m.deleteUser(e.user) }
	}
}

func (m model) upload(e event, id core.TextureID) {
	user, number := m.users[e.user], 1
	for _, x := range m.textures {
		if x.uploader == e.user {
			number++
		}
	}
	user.score -= e.pricing.Cost
	if e.pricing.Reward > 0 && number > user.rewarded {
		user.score, user.rewarded = user.score+e.pricing.Reward, number
	}
	m.textures[id] = &modelTexture{
		uploader: e.user, public: e.public, paid: e.pricing.Cost, refundable: e.pricing.Refund, closets: map[core.UserID]int64{e.user: 0},
	}
}

func (m model) like(e event) (refusal any, effect func(id int64)) {
	user, x := m.users[e.user], m.textures[e.texture]
	if x == nil {
		return fault.NotFound, nil
	}
	_, inCloset := x.closets[e.user]
	switch {
	case !x.public && x.uploader != e.user:
		return fault.Forbidden, nil
	case inCloset:
		return fault.Duplicate, nil
	case user.score < e.pricing.Cost:
		return fault.ScoreTooLow, nil
	}
	return nil, func(int64) {
		user.score -= e.pricing.Cost
		x.closets[e.user] = refund(e.pricing)
		likes := len(x.closets)
		if _, own := x.closets[x.uploader]; own {
			likes--
		}
		if e.pricing.Reward > 0 && x.uploader != 0 && x.uploader != e.user && likes > x.rewarded {
			x.rewarded = likes
			m.earn(x.uploader, e.pricing.Reward)
		}
	}
}

func (m model) unlike(e event) (refusal any, effect func(id int64)) {
	x := m.textures[e.texture]
	if x == nil {
		return fault.NotFound, nil
	}
	back, inCloset := x.closets[e.user]
	if !inCloset {
		return fault.NotFound, nil
	}
	return nil, func(int64) {
		delete(x.closets, e.user)
		m.earn(e.user, back)
	}
}

func (m model) deletePlayer(e event) (refusal any, effect func(id int64)) {
	switch p, ok := m.players[e.player]; {
	case !ok:
		return fault.NotFound, nil
	case p.owner != e.user:
		return fault.Forbidden, nil
	default:
		return nil, func(int64) {
			delete(m.players, e.player)
			m.earn(e.user, p.refund)
		}
	}
}

func (m model) move(e event) (refusal any, effect func(id int64)) {
	x := m.textures[e.texture]
	switch {
	case x == nil:
		return fault.NotFound, nil
	case x.public == e.public:
		return nil, func(int64) {}
	}
	after, before := textureKiB*e.scores.TextureRate(e.public), textureKiB*e.scores.TextureRate(!e.public)
	var cost int64
	switch {
	case after > before:
		cost = max(min(after-x.paid, after-before), 0)
	case x.refundable:
		cost = min(max(after-x.paid, after-before), 0)
	}
	uploader := m.users[x.uploader]
	if uploader != nil && uploader.score < cost {
		return fault.ScoreTooLow, nil
	}
	return nil, func(int64) {
		x.public = e.public
		if uploader != nil {
			x.paid += cost
			uploader.score -= cost
		}
		for user, back := range x.closets {
			if !x.public && user != x.uploader {
				m.earn(user, back)
				delete(x.closets, user)
			}
		}
	}
}

func (m model) deleteTexture(tid core.TextureID) (refusal any, effect func(id int64)) {
	x := m.textures[tid]
	if x == nil {
		return fault.NotFound, nil
	}
	return nil, func(int64) {
		if x.refundable {
			m.earn(x.uploader, x.paid)
		}
		for user, back := range x.closets {
			m.earn(user, back)
		}
		delete(m.textures, tid)
	}
}

func (m model) deleteUser(user core.UserID) {
	delete(m.users, user)
	for pid, p := range m.players {
		if p.owner == user {
			delete(m.players, pid)
		}
	}
	for tid, x := range m.textures {
		delete(x.closets, user)
		switch {
		case x.uploader != user:
		case x.public:
			x.uploader = 0
		default:
			delete(m.textures, tid)
		}
	}
}

// scores returns the score of every user.
func (m model) scores() map[core.UserID]int64 {
	scores := map[core.UserID]int64{}
	for id, user := range m.users {
		scores[id] = user.score
	}
	return scores
}

// scores returns the score of every user.
func (s store) scores(t *testing.T) map[core.UserID]int64 {
	t.Helper()
	scores := map[core.UserID]int64{}
	rows, _ := s.conn().Query(t.Context(), "SELECT uid, score FROM users") // ForEachRow reports the error
	var user core.UserID
	var score int64
	must(pgx.ForEachRow(rows, []any{&user, &score}, func() error {
		scores[user] = score
		return nil
	}))(t)
	return scores
}

// In random sequences of events, scores are as predicted, and the sum of their changes.
func TestScoresAgainstModel(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := newScoreHarness(t)
			random := rand.New(rand.NewPCG(seed, 0))
			m := model{map[core.UserID]*modelUser{s.admin.ID: {}}, map[core.PlayerID]modelPlayer{}, map[core.TextureID]*modelTexture{}}
			for i := range 400 {
				e := s.entities.randomEvent(random)
				want, effect := m.predict(e)
				id, err := s.apply(t.Context(), e)
				var got any
				if err != nil {
					got = fault.KindOf(err)
				}
				if got != want {
					t.Fatalf("event %d, %+v: %v; want the fault %v", i, e, err, want)
				}
				if want == nil {
					effect(id)
				}
				if diff := cmp.Diff(m.scores(), s.scores(t)); diff != "" {
					t.Fatalf("event %d, %+v: scores (-want +got):\n%s", i, e, diff)
				}
				s.checkSums(t, fmt.Sprintf("event %d, %+v", i, e))
			}
		})
	}
}

// With concurrent events, each score is the sum of its changes at any time, and no event fails
// because of another one.
func TestScoreSumsUnderConcurrency(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	s := newScoreHarness(t)
	for range 4 {
		word := fmt.Sprint(len(s.entities.users))
		must(s.apply(t.Context(), event{kind: "register", word: word, pricing: core.Pricing{Cost: 100}}))(t)
	}
	var actors sync.WaitGroup
	for seed := range uint64(8) {
		actors.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 150 {
				e := s.entities.randomEvent(random)
				_, err := s.apply(t.Context(), e)
				if kind := fault.KindOf(err); err != nil && (kind == fault.Internal || kind == fault.Unavailable) {
					t.Errorf("%+v: %v", e, err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		actors.Wait()
		close(ended)
	}()
	for {
		s.checkSums(t, "during the events")
		select {
		case <-ended:
			s.checkSums(t, "after all events")
			return
		default:
		}
	}
}
