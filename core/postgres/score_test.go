package postgres_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// ledger reads scores and their changes.
type ledger struct{ *pgx.Conn }

// changes returns the changes of a user's score, the oldest first, as in "-5 95 player".
func (l ledger) changes(t *testing.T, user core.UserID) []string {
	t.Helper()
	rows, _ := l.Query(t.Context(), // CollectRows reports the error
		"SELECT amount || ' ' || balance || ' ' || reason FROM score_changes WHERE uid = $1 ORDER BY id", user)
	return must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
}

// wantChanges checks the changes of a user's score, and the sums of all.
func (l ledger) wantChanges(t *testing.T, user core.UserID, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.changes(t, user), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what changed the score of user %d (-want +got):\n%s", user, diff)
	}
	l.checkSums(t, "")
}

// checkSums checks that each score is the sum of its changes, and that each balance is the sum
// up to it.
func (l ledger) checkSums(t *testing.T, after string) {
	t.Helper()
	var sums, balances int
	if err := l.QueryRow(t.Context(), `
		SELECT
			(SELECT count(*) FROM users u WHERE score <> (SELECT coalesce(sum(amount), 0) FROM score_changes c WHERE c.uid = u.uid)),
			(SELECT count(*) FROM (SELECT balance, sum(amount) OVER (PARTITION BY uid ORDER BY id) FROM score_changes) c WHERE balance <> sum)`,
	).Scan(&sums, &balances); err != nil {
		t.Fatal(err)
	}
	if sums != 0 || balances != 0 {
		t.Errorf("%s: %d users have another score than the sum of its changes, and %d changes another balance", after, sums, balances)
	}
}

// inTx runs work in a transaction, and again after a deadlock.
func inTx(ctx context.Context, beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, do func(pgx.Tx) error,
) error {
	for {
		err := pgx.BeginFunc(ctx, beginner, do)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "40P01" {
			return err
		}
	}
}

// scoreTest is a database, with a ledger of its scores.
type scoreTest struct {
	*postgres.DB
	ledger
}

func newScoreTest(t *testing.T) scoreTest {
	t.Helper()
	address := postgrestest.URL(t)
	return scoreTest{postgrestest.Connect(t, address), ledger{postgrestest.Conn(t, address)}}
}

// user adds a user with a score.
func (s scoreTest) user(t *testing.T, name string, score int64) core.UserID {
	t.Helper()
	email := name + "@example.com"
	return must(s.CreateUser(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: name, PasswordHash: "x", Score: score}))(t).ID
}

func (s scoreTest) upload(t *testing.T, user core.UserID, word string, public bool, pricing core.Pricing) core.TextureID {
	t.Helper()
	return must(s.AddTexture(t.Context(), texture(user, skin.Classic, word, public), pricing, putOK))(t).ID
}

func (s scoreTest) charge(t *testing.T, user core.UserID, amount int64) error {
	t.Helper()
	return inTx(t.Context(), s.Conn, func(tx pgx.Tx) error {
		return postgres.Charge(t.Context(), tx, user, amount, "administrator", "")
	})
}

// do fails the test on an error.
func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A score from before the migration gets an opening entry.
func TestMigrationOpensTheLedger(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*_score.sql")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v; want one migration", files, err)
	}
	number, err := strconv.Atoi(filepath.Base(files[0])[:3])
	do(t, err)

	address := postgrestest.Empty(t)
	db, conn := postgrestest.Connect(t, address), ledger{postgrestest.Conn(t, address)}
	do(t, db.MigrateTo(t.Context(), int32(number-1)))
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO users (email, email_key, nickname, password_hash, score) VALUES ('a', 'a', 'a', 'x', 0), ('b', 'b', 'b', 'x', 70), ('c', 'c', 'c', 'x', 1)`,
	); err != nil {
		t.Fatal(err)
	}
	for range 2 { // up, down, and up again
		do(t, db.MigrateTo(t.Context(), int32(number)))
		conn.wantChanges(t, 1)
		conn.wantChanges(t, 2, "70 70 opening")
		conn.wantChanges(t, 3, "1 1 opening")
		do(t, db.MigrateTo(t.Context(), int32(number-1)))
	}
}

// A charge never exceeds the score.
func TestCharge(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann := s.user(t, "ann", 10)

	do(t, s.charge(t, ann, 4))
	do(t, s.charge(t, ann, 0))
	wantKind(t, s.charge(t, ann, 7), fault.ScoreTooLow)
	do(t, s.charge(t, ann, -3))
	do(t, s.charge(t, ann, 9))
	wantKind(t, s.charge(t, ann, 1), fault.ScoreTooLow)
	wantKind(t, s.charge(t, ann+100, 1), fault.Unauthenticated)
	s.wantChanges(t, ann, "10 10 registration", "-4 6 administrator", "3 9 administrator", "-9 0 administrator")
}

// Of concurrent charges no more succeed than the score covers.
func TestChargesAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	s := scoreTest{db, ledger{postgrestest.Conn(t, address)}}
	ann := s.user(t, "ann", 20)
	outcomes := make(chan error, 10)
	for range cap(outcomes) {
		conn := postgrestest.Conn(t, address)
		go func() {
			outcomes <- inTx(t.Context(), conn, func(tx pgx.Tx) error {
				return postgres.Charge(t.Context(), tx, ann, 5, "administrator", "")
			})
		}()
	}
	if got := countKinds(t, outcomes); got[nil] != 4 || got[fault.ScoreTooLow] != 6 {
		t.Errorf("10 charges with a score for 4: %v; want 4 successes and 6 faults", got)
	}
	s.checkSums(t, "charges at once")
}

// Costs are charged, refundable ones are refunded, and without a price nothing is recorded.
func TestCostsAndRefunds(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	bob := s.user(t, "bob", 0)
	public := s.upload(t, bob, "public", true, core.Pricing{})
	f := func(bought, back string, add func(user core.UserID, pricing core.Pricing) (remove func() error)) {
		t.Helper()
		user := s.user(t, bought, 100)
		do(t, add(user, core.Pricing{})())
		do(t, add(user, core.Pricing{Refund: true})())
		s.wantChanges(t, user, "100 100 registration")
		do(t, add(user, core.Pricing{Cost: 5})())
		do(t, add(user, core.Pricing{Cost: 5, Refund: true})())
		s.wantChanges(t, user, "100 100 registration", "-5 95 "+bought, "-5 90 "+bought, "5 95 "+back)
	}

	f("player", "player_refund", func(user core.UserID, pricing core.Pricing) func() error {
		added := must(s.CreatePlayer(t.Context(), user, player("Steve"), pricing))(t).ID
		return func() error { return s.DeletePlayer(t.Context(), user, added) }
	})
	f("closet_item", "closet_item_refund", func(user core.UserID, pricing core.Pricing) func() error {
		do(t, s.AddClosetItem(t.Context(), user, public, "N", pricing))
		return func() error { return s.RemoveClosetItem(t.Context(), user, public) }
	})
	f("upload", "texture_refund", func(user core.UserID, pricing core.Pricing) func() error {
		added := s.upload(t, user, "own", false, pricing)
		return func() error {
			return s.DeleteTexture(t.Context(), added)
		}
	})
	s.wantChanges(t, bob)
}

// The item of a private texture, which administrators may add, is refunded when the uploader is
// deleted.
func TestRefundOfItemsOfDeletedUser(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann, bob := s.user(t, "ann", 10), s.user(t, "bob", 10)
	do(t, s.SetPermission(t.Context(), ann, core.Administrator))
	tid := s.upload(t, bob, "a", false, core.Pricing{Cost: 4, Refund: true})
	do(t, s.AddClosetItem(t.Context(), ann, tid, "N", core.Pricing{Cost: 3, Refund: true}))
	do(t, s.DeleteUser(t.Context(), credentialsOf(core.User{ID: bob})))
	s.wantChanges(t, ann, "10 10 registration", "-3 7 closet_item", "3 10 closet_item_refund")
}

// A score set by an administrator is recorded as a change.
func TestAdministratorSetsScore(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	admin, ann := s.user(t, "chief", 0), s.user(t, "ann", 10)
	do(t, s.SetPermission(t.Context(), admin, core.SuperAdministrator))
	by := core.Actor{ID: admin, From: netip.MustParseAddr("192.0.2.1")}
	for _, score := range []int64{25, 3, 3, 0} {
		if user := must(s.SetScoreBy(t.Context(), by, ann, score))(t); user.Score != score {
			t.Errorf("the score is %d; want %d", user.Score, score)
		}
	}
	s.wantChanges(t, ann, "10 10 registration", "15 25 administrator", "-22 3 administrator", "-3 0 administrator")
}

// An item that is removed because its texture becomes private is refunded.
func TestRefundOfLostItems(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann, bob, zoe := s.user(t, "ann", 10), s.user(t, "bob", 10), s.user(t, "zoe", 10)
	tid := s.upload(t, bob, "a", true, core.Pricing{Cost: 4, Refund: true})
	do(t, s.AddClosetItem(t.Context(), ann, tid, "N", core.Pricing{Cost: 3, Refund: true}))
	do(t, s.AddClosetItem(t.Context(), zoe, tid, "N", core.Pricing{Cost: 3}))
	must(s.ChangeTexture(t.Context(), tid, core.TextureChange{Public: new(false)}, core.Scores{}))(t)
	s.wantChanges(t, ann, "10 10 registration", "-3 7 closet_item", "3 10 closet_item_refund")
	do(t, s.DeleteTexture(t.Context(), tid))
	s.wantChanges(t, bob, "10 10 registration", "-4 6 upload", "4 10 texture_refund")
	s.wantChanges(t, zoe, "10 10 registration", "-3 7 closet_item")
}

// A cost is charged before the reward for the same upload, and cannot be paid with it.
func TestUploadRewards(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann := s.user(t, "ann", 6)
	pricing := core.Pricing{Cost: 4, Reward: 3}
	s.upload(t, ann, "a", true, pricing)
	s.upload(t, ann, "b", false, pricing)
	history := []string{"6 6 registration", "-4 2 upload", "3 5 upload_reward", "-4 1 upload", "3 4 upload_reward"}
	s.wantChanges(t, ann, history...)
	_, err := s.AddTexture(t.Context(), texture(ann, skin.Classic, "c", true), core.Pricing{Cost: 5, Reward: 5}, putOK)
	wantKind(t, err, fault.ScoreTooLow)
	_, err = s.AddTexture(t.Context(), texture(ann, skin.Classic, "b", true), pricing, putOK)
	wantKind(t, err, fault.Duplicate)
	s.wantChanges(t, ann, history...)
}

// Repeating a rewarded action after undoing it earns nothing.
func TestRewardIsPaidOnce(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann, bob, zoe := s.user(t, "ann", 0), s.user(t, "bob", 0), s.user(t, "zoe", 0)
	reward := core.Pricing{Reward: 3}
	like := func(user core.UserID, tid core.TextureID) {
		t.Helper()
		do(t, s.AddClosetItem(t.Context(), user, tid, "N", reward))
	}
	unlike := func(user core.UserID, tid core.TextureID) {
		t.Helper()
		do(t, s.RemoveClosetItem(t.Context(), user, tid))
	}

	first := s.upload(t, ann, "a", true, reward)
	second := s.upload(t, ann, "b", true, reward)
	earned := []string{"3 3 upload_reward", "3 6 upload_reward"}
	s.wantChanges(t, ann, earned...)
	do(t, s.DeleteTexture(t.Context(), second))
	s.upload(t, ann, "c", true, reward)
	s.wantChanges(t, ann, earned...)
	s.upload(t, ann, "d", true, reward)
	earned = append(earned, "3 9 upload_reward")
	s.wantChanges(t, ann, earned...)

	unlike(ann, first) // the uploader's own like does not count
	like(bob, first)
	earned = append(earned, "3 12 like")
	s.wantChanges(t, ann, earned...)
	unlike(bob, first)
	like(bob, first)
	unlike(bob, first)
	like(zoe, first)
	like(ann, first)
	s.wantChanges(t, ann, earned...)
	like(bob, first)
	earned = append(earned, "3 15 like")
	s.wantChanges(t, ann, earned...)
	s.wantChanges(t, bob)
	s.wantChanges(t, zoe)
}

// A like rewards the uploader and charges the user that likes.
func TestLikeWithCostAndReward(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann, bob := s.user(t, "ann", 0), s.user(t, "bob", 8)
	tid := s.upload(t, ann, "a", true, core.Pricing{})
	pricing := core.Pricing{Cost: 5, Reward: 3}
	do(t, s.AddClosetItem(t.Context(), bob, tid, "N", pricing))
	wantKind(t, s.AddClosetItem(t.Context(), bob, tid, "N", pricing), fault.Duplicate)
	wantKind(t, s.AddClosetItem(t.Context(), bob, s.upload(t, ann, "b", true, core.Pricing{}), "N", pricing), fault.ScoreTooLow)
	s.wantChanges(t, ann, "3 3 like")
	s.wantChanges(t, bob, "8 8 registration", "-5 3 closet_item")

	// A like of a texture without an uploader rewards no user.
	tid = s.upload(t, ann, "c", true, core.Pricing{})
	user := core.User{ID: ann}
	do(t, s.DeleteUser(t.Context(), credentialsOf(user)))
	do(t, s.AddClosetItem(t.Context(), bob, tid, "N", core.Pricing{Cost: 1, Reward: 3}))
	s.wantChanges(t, bob, "8 8 registration", "-5 3 closet_item", "-1 2 closet_item")
}

// The amount paid for a texture follows its visibility towards today's prices, by at most the
// difference between them.
func TestMoveCost(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann := s.user(t, "ann", 20)
	move := func(tid core.TextureID, public bool, price, private int64) error {
		_, err := s.ChangeTexture(t.Context(), tid, core.TextureChange{Public: &public}, core.Scores{TextureKiB: price, PrivateTextureKiB: private})
		return err
	}
	tid := s.upload(t, ann, "a", true, core.Pricing{Cost: 2, Refund: true}) // of 1 KiB
	history := []string{"20 20 registration", "-2 18 upload"}
	f := func(public bool, price, private int64, change ...string) {
		t.Helper()
		do(t, move(tid, public, price, private))
		history = append(history, change...)
		s.wantChanges(t, ann, history...)
	}
	f(true, 2, 5) // it is public
	f(false, 2, 5, "-3 15 visibility")
	f(true, 2, 5, "3 18 visibility")
	f(false, 3, 3)
	f(true, 2, 9) // 7 less, but no more than 2 was paid
	f(false, 2, 9, "-7 11 visibility")
	wantKind(t, move(tid, true, 30, 1), fault.ScoreTooLow)
	f(true, 0, 0)
	f(false, 20, 30, "-10 1 visibility") // at most the difference, though it was free
	f(true, 4, 9, "5 6 visibility")
	f(false, 4, 9) // more was paid than it costs

	// A change by an administrator costs nothing, nor does reverting it.
	admin := s.user(t, "chief", 0)
	do(t, s.SetPermission(t.Context(), admin, core.SuperAdministrator))
	by := func(public bool) {
		t.Helper()
		_, err := s.ChangeTextureBy(t.Context(), core.Actor{ID: admin, From: adminAddr}, tid, core.TextureChange{Public: &public}, core.Scores{TextureKiB: 50})
		do(t, err)
	}
	by(true)
	f(false, 4, 9)
	f(true, 4, 9, "5 11 visibility")
	f(false, 4, 9)
	f(true, 4, 9, "5 16 visibility")
	by(false)
	f(true, 4, 9)
	do(t, s.DeleteTexture(t.Context(), tid))
	s.wantChanges(t, ann, append(history, "4 20 texture_refund")...)

	// A texture without an uploader costs nothing.
	tid = s.upload(t, ann, "b", true, core.Pricing{Cost: 1})
	do(t, s.DeleteUser(t.Context(), credentialsOf(core.User{ID: ann})))
	do(t, move(tid, false, 0, 9))
}

// Old changes are merged into one for each user, with the same sum.
func TestTrimScoreChanges(t *testing.T) {
	t.Parallel()
	s := newScoreTest(t)
	ann, bob, zoe := s.user(t, "ann", 10), s.user(t, "bob", 10), s.user(t, "zoe", 10)
	do(t, s.charge(t, ann, 4))
	do(t, s.charge(t, bob, 10))
	if _, err := s.Exec(t.Context(), "UPDATE score_changes SET changed_at = changed_at - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	do(t, s.charge(t, ann, -1))
	do(t, s.charge(t, bob, -2))
	f := func(age time.Duration, gone int, anns, bobs, zoes []string) {
		t.Helper()
		if got := must(s.TrimScoreChanges(t.Context(), time.Now().Add(-age)))(t); got != gone {
			t.Errorf("%d changes were deleted; want %d", got, gone)
		}
		s.wantChanges(t, ann, anns...)
		s.wantChanges(t, bob, bobs...)
		s.wantChanges(t, zoe, zoes...)
	}
	all := func(changes ...string) []string { return changes }

	f(2*time.Hour, 0, all("10 10 registration", "-4 6 administrator", "1 7 administrator"),
		all("10 10 registration", "-10 0 administrator", "2 2 administrator"), all("10 10 registration"))
	f(time.Minute, 3, all("6 6 carried", "1 7 administrator"), all("2 2 administrator"), all("10 10 carried"))
	f(time.Minute, 0, all("6 6 carried", "1 7 administrator"), all("2 2 administrator"), all("10 10 carried"))
	f(-time.Minute, 1, all("7 7 carried"), all("2 2 carried"), all("10 10 carried"))
}

// Two users that like each other's textures are locked in one order, so that they do not
// deadlock.
func TestLikesLockUsersInOrder(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	anns, bobs := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)).ID, addTexture(t, db, texture(bob.ID, skin.Classic, "b", true)).ID
	f := func(fan core.UserID, tid core.TextureID) {
		t.Helper()
		other := beginLockTx(t, address)
		other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
		liked := make(chan error, 1)
		go func() { liked <- db.AddClosetItem(t.Context(), fan, tid, "N", core.Pricing{Reward: 1}) }()
		other.waitBlocked(t, 1)
		other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE NOWAIT", bob.ID)
		other.commitOnceBlocked(t, 1)
		do(t, <-liked)
	}
	f(ann.ID, bobs)
	f(bob.ID, anns)
}

// Without a reward, a like does not wait for the uploader.
func TestUnrewardedLikeLocksNoUploader(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	tid := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)).ID
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	do(t, db.AddClosetItem(ctx, bob.ID, tid, "N", core.Pricing{}))
	other.commitOnceBlocked(t, 0)
}

// Of concurrent sign-ins for a day, one is rewarded.
func TestSignsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	s := newScoreTest(t)
	ann := s.user(t, "ann", 0)
	now := time.Date(2031, 2, 3, 23, 59, 59, 0, time.UTC)
	for day := range 2 {
		outcomes := make(chan error, 10)
		for range cap(outcomes) {
			go func() {
				_, err := s.Sign(t.Context(), ann, now.AddDate(0, 0, day), 5)
				outcomes <- err
			}()
		}
		if got := countKinds(t, outcomes); got[nil] != 1 || got[fault.Refused] != 9 {
			t.Errorf("10 sign-ins on day %d: %v; want 1 success and 9 faults", day, got)
		}
	}
	s.wantChanges(t, ann, "5 5 sign", "5 10 sign")
	_, err := s.Sign(t.Context(), ann+100, now, 5)
	wantKind(t, err, fault.Unauthenticated)
}
