package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
)

// UserAdminStore changes users for administrators. Each method first makes sure of
// the authority, which must be over the user, else it returns a Forbidden fault;
// NotFound without such a user. With the change it writes one entry of the audit
// log, and with a failure none.
type UserAdminStore interface {
	// SetPermissionBy changes what a user may do, as SetPermission does, to what the
	// authority grants.
	SetPermissionBy(ctx context.Context, by Authority, user UserID, permission Permission) (User, error)
}

// SetPermissionBy has an administrator ban a user, lift a ban, or make or unmake
// an administrator. Nobody becomes a super administrator this way.
func (a *Accounts) SetPermissionBy(ctx context.Context, by Authority, user UserID, permission int64) (User, error) {
	if permission < int64(Banned) || permission > int64(Administrator) {
		return User{}, fault.Field("permission", "The permission is %d, but must be -1, 0 or 1.", permission)
	}
	return a.store.SetPermissionBy(ctx, by, user, Permission(permission))
}
