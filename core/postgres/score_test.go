package postgres_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// changes returns the changes of a user's score, the oldest first, as in "-5 95 player".
func (s store) changes(t *testing.T, user core.UserID) []string {
	t.Helper()
	rows, _ := s.conn().Query(t.Context(), // CollectRows reports the error
		"SELECT amount || ' ' || balance || ' ' || reason FROM score_changes WHERE uid = $1 ORDER BY id", user)
	return must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
}

// wantChanges checks the changes of a user's score, and the sums of all.
func (s store) wantChanges(t *testing.T, user core.UserID, want ...string) {
	t.Helper()
	diff := cmp.Diff(want, s.changes(t, user), cmpopts.EquateEmpty())
	testenv.Check(t, diff == "", "what changed the score of user %d (-want +got):\n%s", user, diff)
	s.checkSums(t, "")
}

// checkSums checks that each score is the sum of its changes, and that each balance is the sum
// up to it.
func (s store) checkSums(t *testing.T, after string) {
	t.Helper()
	var sums, balances int
	do(t, s.conn().QueryRow(t.Context(), `
		SELECT
			(SELECT count(*) FROM users u WHERE score <> (SELECT coalesce(sum(amount), 0) FROM score_changes c WHERE c.uid = u.uid)),
			(SELECT count(*) FROM (SELECT balance, sum(amount) OVER (PARTITION BY uid ORDER BY id) FROM score_changes) c WHERE balance <> sum)`,
	).Scan(&sums, &balances))
	testenv.Equal(t, sums, 0, "%s: users whose score is not the sum of its changes", after)
	testenv.Equal(t, balances, 0, "%s: changes whose balance is not the sum up to them", after)
}

// user adds a user with a score.
func (s store) user(t *testing.T, name string, score int64) core.UserID {
	t.Helper()
	email := name + "@example.com"
	return must(s.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: email, EmailKey: email, Nickname: name, PasswordHash: "x", Score: score}))(t).ID
}

func (s store) upload(t *testing.T, user core.UserID, word string, public bool, pricing core.Pricing) core.TextureID {
	t.Helper()
	return must(s.AddTexture(t.Context(), texture(user, skin.Classic, word, public), pricing, putOK))(t).ID
}

// A score from before the migration gets an opening entry.
func TestMigrationOpensTheLedger(t *testing.T) {
	t.Parallel()
	number := migration(t, "score")

	db := openEmpty(t)
	do(t, db.MigrateTo(t.Context(), number-1))
	db.exec(t, `
		INSERT INTO users (email, email_key, nickname, password_hash, score) VALUES ('a', 'a', 'a', 'x', 0), ('b', 'b', 'b', 'x', 70), ('c', 'c', 'c', 'x', 1)`,
	)
	for range 2 { // up, down, and up again
		do(t, db.MigrateTo(t.Context(), number))
		db.wantChanges(t, 1)
		db.wantChanges(t, 2, "70 70 opening")
		db.wantChanges(t, 3, "1 1 opening")
		do(t, db.MigrateTo(t.Context(), number-1))
	}
}

// Costs are charged, refundable ones are refunded, and without a price nothing is recorded.
func TestCostsAndRefunds(t *testing.T) {
	t.Parallel()
	s := open(t)
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
		return func() error { return s.DeletePlayer(t.Context(), as(user), added) }
	})
	f("closet_item", "closet_item_refund", func(user core.UserID, pricing core.Pricing) func() error {
		do(t, s.AddClosetItem(t.Context(), as(user), user, public, "N", pricing))
		return func() error { return s.RemoveClosetItem(t.Context(), as(user), user, public) }
	})
	f("upload", "texture_refund", func(user core.UserID, pricing core.Pricing) func() error {
		added := s.upload(t, user, "own", false, pricing)
		return func() error { return s.DeleteTexture(t.Context(), anyOwner, added, false) }
	})
	s.wantChanges(t, bob)
}

// The item of a private texture, which administrators may add, is refunded when the uploader is
// deleted.
func TestRefundOfItemsOfDeletedUser(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann, bob := s.user(t, "ann", 10), s.user(t, "bob", 10)
	do(t, s.ForcePermission(t.Context(), ann, core.Administrator))
	tid := s.upload(t, bob, "a", false, core.Pricing{Cost: 4, Refund: true})
	do(t, s.AddClosetItem(t.Context(), as(ann), ann, tid, "N", core.Pricing{Cost: 3, Refund: true}))
	do(t, s.DeleteUser(t.Context(), as(core.User{ID: bob}.ID), credentialsOf(core.User{ID: bob})))
	s.wantChanges(t, ann, "10 10 registration", "-3 7 closet_item", "3 10 closet_item_refund")
}

// A score set by an administrator is recorded as a change.
func TestAdministratorSetsScore(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin, ann := s.user(t, "chief", 0), s.user(t, "ann", 10)
	do(t, s.ForcePermission(t.Context(), admin, core.SuperAdministrator))
	by := core.Actor{ID: admin, From: netip.MustParseAddr("192.0.2.1")}
	for _, score := range []int64{25, 3, 3, 0} {
		testenv.Equal(t, must(s.SetScore(t.Context(), by, ann, score))(t).Score, score, "the score")
	}
	s.wantChanges(t, ann, "10 10 registration", "15 25 administrator", "-22 3 administrator", "-3 0 administrator")
}

// An item that is removed because its texture becomes private is refunded.
func TestRefundOfLostItems(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann, bob, zoe := s.user(t, "ann", 10), s.user(t, "bob", 10), s.user(t, "zoe", 10)
	tid := s.upload(t, bob, "a", true, core.Pricing{Cost: 4, Refund: true})
	do(t, s.AddClosetItem(t.Context(), as(ann), ann, tid, "N", core.Pricing{Cost: 3, Refund: true}))
	do(t, s.AddClosetItem(t.Context(), as(zoe), zoe, tid, "N", core.Pricing{Cost: 3}))
	must(s.change(t.Context(), tid, core.TextureChange{Public: new(false)}))(t)
	s.wantChanges(t, ann, "10 10 registration", "-3 7 closet_item", "3 10 closet_item_refund")
	do(t, s.DeleteTexture(t.Context(), anyOwner, tid, false))
	s.wantChanges(t, bob, "10 10 registration", "-4 6 upload", "4 10 texture_refund")
	s.wantChanges(t, zoe, "10 10 registration", "-3 7 closet_item")
}

// A cost is charged before the reward for the same upload, and cannot be paid with it.
func TestUploadRewards(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann := s.user(t, "ann", 6)
	pricing := core.Pricing{Cost: 4, Reward: 3}
	s.upload(t, ann, "a", true, pricing)
	s.upload(t, ann, "b", false, pricing)
	history := []string{"6 6 registration", "-4 2 upload", "3 5 upload_reward", "-4 1 upload", "3 4 upload_reward"}
	s.wantChanges(t, ann, history...)
	wantKind(t, errOf(s.AddTexture(t.Context(), texture(ann, skin.Classic, "c", true), core.Pricing{Cost: 5, Reward: 5}, putOK)), fault.ScoreTooLow)
	wantKind(t, errOf(s.AddTexture(t.Context(), texture(ann, skin.Classic, "b", true), pricing, putOK)), fault.Duplicate)
	s.wantChanges(t, ann, history...)
}

// Repeating a rewarded action after undoing it earns nothing.
func TestRewardIsPaidOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann, bob, zoe := s.user(t, "ann", 0), s.user(t, "bob", 0), s.user(t, "zoe", 0)
	reward := core.Pricing{Reward: 3}
	like := func(user core.UserID, tid core.TextureID) {
		t.Helper()
		do(t, s.AddClosetItem(t.Context(), as(user), user, tid, "N", reward))
	}
	unlike := func(user core.UserID, tid core.TextureID) {
		t.Helper()
		do(t, s.RemoveClosetItem(t.Context(), as(user), user, tid))
	}

	first := s.upload(t, ann, "a", true, reward)
	second := s.upload(t, ann, "b", true, reward)
	earned := []string{"3 3 upload_reward", "3 6 upload_reward"}
	s.wantChanges(t, ann, earned...)
	do(t, s.DeleteTexture(t.Context(), anyOwner, second, false))
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
	s := open(t)
	ann, bob := s.user(t, "ann", 0), s.user(t, "bob", 8)
	tid := s.upload(t, ann, "a", true, core.Pricing{})
	pricing := core.Pricing{Cost: 5, Reward: 3}
	do(t, s.AddClosetItem(t.Context(), as(bob), bob, tid, "N", pricing))
	wantKind(t, s.AddClosetItem(t.Context(), as(bob), bob, tid, "N", pricing), fault.Duplicate)
	wantKind(t, s.AddClosetItem(t.Context(), as(bob), bob, s.upload(t, ann, "b", true, core.Pricing{}), "N", pricing), fault.ScoreTooLow)
	s.wantChanges(t, ann, "3 3 like")
	s.wantChanges(t, bob, "8 8 registration", "-5 3 closet_item")

	// A like of a texture without an uploader rewards no user.
	tid = s.upload(t, ann, "c", true, core.Pricing{})
	user := core.User{ID: ann}
	do(t, s.DeleteUser(t.Context(), as(user.ID), credentialsOf(user)))
	do(t, s.AddClosetItem(t.Context(), as(bob), bob, tid, "N", core.Pricing{Cost: 1, Reward: 3}))
	s.wantChanges(t, bob, "8 8 registration", "-5 3 closet_item", "-1 2 closet_item")
}

// The amount paid for a texture follows its visibility towards today's prices, by at most the
// difference between them.
func TestMoveCost(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann := s.user(t, "ann", 20)
	move := func(tid core.TextureID, public bool, price, private int64) error {
		return errOf(s.ChangeTexture(t.Context(), anyOwner, tid, core.TextureChange{Public: &public}, core.ScorePrices{TextureKiB: price, PrivateTextureKiB: private}))
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
	do(t, s.ForcePermission(t.Context(), admin, core.SuperAdministrator))
	by := func(public bool) {
		t.Helper()
		_, err := s.ChangeTexture(t.Context(), core.Actor{ID: admin, From: adminAddr}, tid, core.TextureChange{Public: &public}, core.ScorePrices{TextureKiB: 50})
		do(t, err)
	}
	by(true)
	f(false, 4, 9)
	f(true, 4, 9, "5 11 visibility")
	f(false, 4, 9)
	f(true, 4, 9, "5 16 visibility")
	by(false)
	f(true, 4, 9)
	do(t, s.DeleteTexture(t.Context(), anyOwner, tid, false))
	s.wantChanges(t, ann, append(history, "4 20 texture_refund")...)

	// A texture without an uploader costs nothing.
	tid = s.upload(t, ann, "b", true, core.Pricing{Cost: 1})
	do(t, s.DeleteUser(t.Context(), as(core.User{ID: ann}.ID), credentialsOf(core.User{ID: ann})))
	do(t, move(tid, false, 0, 9))
}

// Old changes are merged into one for each user, with the same sum.
func TestTrimScoreChanges(t *testing.T) {
	t.Parallel()
	s := open(t)
	ann, bob, zoe := s.user(t, "ann", 10), s.user(t, "bob", 10), s.user(t, "zoe", 10)
	do(t, s.Charge(t.Context(), ann, 4))
	do(t, s.Charge(t.Context(), bob, 10))
	s.exec(t, "UPDATE score_changes SET changed_at = changed_at - interval '1 hour'")
	do(t, s.Charge(t.Context(), ann, -1))
	do(t, s.Charge(t.Context(), bob, -2))
	f := func(age time.Duration, gone int, anns, bobs, zoes []string) {
		t.Helper()
		testenv.Equal(t, must(s.TrimScoreChanges(t.Context(), time.Now().Add(-age)))(t), gone, "changes were deleted")
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
	db, ann, bob := openForTwo(t)
	anns, bobs := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)).ID, addTexture(t, db, texture(bob.ID, skin.Classic, "b", true)).ID
	f := func(fan core.UserID, tid core.TextureID) {
		t.Helper()
		other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
		like := func() error { return db.AddClosetItem(t.Context(), as(fan), fan, tid, "N", core.Pricing{Reward: 1}) }
		do(t, other.delays(t, like, func() {
			other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE NOWAIT", bob.ID)
		}))
	}
	f(ann.ID, bobs)
	f(bob.ID, anns)
}

// Without a reward, a like does not wait for the uploader.
func TestUnrewardedLikeLocksNoUploader(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	tid := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)).ID
	other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	do(t, db.AddClosetItem(ctx, as(bob.ID), bob.ID, tid, "N", core.Pricing{}))
	other.commitOnceBlocked(t, 0)
}

// Of concurrent sign-ins for a day, one is rewarded.
func TestSignsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	s := open(t)
	ann := s.user(t, "ann", 0)
	now := time.Date(2031, 2, 3, 23, 59, 59, 0, time.UTC)
	for day := range 2 {
		atOnce(t, 10, 1, fault.Refused, func(int) error {
			return errOf(s.Sign(t.Context(), ann, now.AddDate(0, 0, day), 5))
		})
	}
	s.wantChanges(t, ann, "5 5 sign", "5 10 sign")
	wantKind(t, errOf(s.Sign(t.Context(), ann+100, now, 5)), fault.Unauthenticated)
}
