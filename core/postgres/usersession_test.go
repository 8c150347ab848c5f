package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// The token that a launcher gets while its user's sessions are ended is revoked, too.
func TestEndSignInsAfterWaitingRevokesSuccessors(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	conn := postgrestest.Conn(t, address)
	window := core.LauncherTokenWindow{Valid: time.Hour, Refreshable: time.Hour}
	must(db.IssueLauncherToken(t.Context(), core.NewLauncherToken{Hash: core.LauncherHash{1}, Credentials: credentialsOf(ann), Network: homeNetwork}))(t)

	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)
	refreshed, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := db.RefreshLauncherToken(t.Context(), core.LauncherRefresh{Old: core.LauncherHash{1}, New: core.LauncherHash{2}, Window: window})
		refreshed <- err
	}()
	other.waitBlocked(t, 1)
	go func() { ended <- db.EndSignIns(t.Context(), ann.ID, uuid.New()) }()
	other.commitOnceBlocked(t, 2)
	if err := <-refreshed; err != nil && !errors.Is(err, core.ErrLauncherToken) {
		t.Error(err)
	}
	do(t, <-ended)
	var tokens int
	do(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM launcher_tokens").Scan(&tokens))
	if tokens != 0 {
		t.Errorf("%d tokens are left", tokens)
	}
}
