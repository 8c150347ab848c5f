package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

// The token that a launcher gets while its user's sessions are ended is revoked, too.
func TestEndSignInsAfterWaitingRevokesSuccessors(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	window := core.LauncherTokenWindow{Valid: time.Hour, Refreshable: time.Hour}
	must(db.IssueLauncherToken(t.Context(), core.NewLauncherToken{Hash: core.LauncherHash{1}, Credentials: credentialsOf(ann), Network: homeNetwork}))(t)

	other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
	refreshed := start(func() error {
		return errOf(db.RefreshLauncherToken(t.Context(), core.LauncherRefresh{Old: core.LauncherHash{1}, New: core.LauncherHash{2}, Window: window}))
	})
	other.waitBlocked(t, 1)
	ended := start(func() error { return db.EndSignIns(t.Context(), ann.ID, uuid.New()) })
	other.commitOnceBlocked(t, 2)
	if err := <-refreshed; err != nil && !errors.Is(err, core.ErrLauncherToken) {
		t.Error(err)
	}
	do(t, <-ended)
	db.hasCount(t, 0, "SELECT count(*) FROM launcher_tokens")
}
