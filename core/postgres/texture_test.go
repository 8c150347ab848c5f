package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// However an upload ends, its connection is returned without a transaction or a lock.
func TestAddTextureReleasesConnection(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	idle := func() []int {
		t.Helper()
		rows, _ := db.conn().Query(t.Context(),
			"SELECT pid FROM pg_stat_activity WHERE application_name = current_database() AND state = 'idle' ORDER BY pid") // CollectRows reports the error
		return must(pgx.CollectRows(rows, pgx.RowTo[int]))(t)
	}
	addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	before := idle()
	if len(before) == 0 {
		t.Fatal("there is no connection")
	}
	wantRejected := func(what string, ctx context.Context, fresh core.NewTexture, pricing core.Pricing, put func(context.Context) error, want error) {
		t.Helper()
		_, err := db.AddTexture(ctx, fresh, pricing, put)
		testenv.Check(t, err != nil && (errors.Is(err, want) || fault.KindOf(err) == fault.KindOf(want)),
			"%s: %v; want %v", what, err, want)
		cmptest.Same(t, idle(), before, "%s: the idle connections", what)
	}

	fresh := texture(ann.ID, skin.Classic, "b", true)
	putErr := errors.New("disk full")
	ctx, cancel := context.WithCancel(t.Context())
	kind := func(kind fault.Kind) error { return fault.New(kind, "") }
	wantRejected("a duplicate", t.Context(), texture(bob.ID, skin.Classic, "a", true), core.Pricing{}, putOK, kind(fault.Duplicate))
	wantRejected("one texture too many", t.Context(), fresh, core.Pricing{Quotas: core.Quotas{Textures: 1}}, putOK, kind(fault.Refused))
	wantRejected("a byte too many", t.Context(), fresh, core.Pricing{Quotas: core.Quotas{TextureBytes: 199}}, putOK, kind(fault.Refused))
	wantRejected("a full closet", t.Context(), fresh, core.Pricing{Quotas: core.Quotas{ClosetItems: 1}}, putOK, kind(fault.Refused))
	wantRejected("a poor uploader", t.Context(), fresh, core.Pricing{Cost: 1}, putOK, kind(fault.ScoreTooLow))
	wantRejected("an unknown user", t.Context(), texture(ann.ID+100, skin.Classic, "b", true), core.Pricing{}, putOK, kind(fault.Unauthenticated))
	wantRejected("a file that cannot be stored", t.Context(), fresh, core.Pricing{}, func(context.Context) error { return putErr }, putErr)
	wantRejected("a deadline during the upload", ctx, fresh, core.Pricing{}, func(ctx context.Context) error { cancel(); return ctx.Err() }, context.Canceled)

	// The lock on the file's hash is released, and nothing was recorded.
	db.hasCount(t, 0, "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "+
		"WHERE application_name = current_database() AND locktype = 'advisory'")
	addTexture(t, db, fresh)
}

// An upload that loses a conflict reports the duplicate, even if the user is deleted next.
func TestAddTextureConflictBeforeUserDeletion(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	upload := texture(ann.ID, skin.Classic, "a", false)
	waiting, proceed := make(chan struct{}), make(chan struct{})
	added := start(func() error {
		return errOf(db.AddTexture(t.Context(), upload, core.Pricing{}, func(context.Context) error {
			close(waiting)
			<-proceed
			return nil
		}))
	})
	<-waiting
	duplicate := addTexture(t, db, upload)

	// The upload and the deletion wait for the same user, one after the other.
	other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
	close(proceed)
	other.waitBlocked(t, 1)
	deleted := start(func() error { return db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)) })
	other.commitOnceBlocked(t, 2)
	wantDuplicateOf(t, <-added, duplicate.ID)
	do(t, <-deleted)
}
