package core

import (
	"net/netip"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Authority is that of an administrator who acts, and where from. Stores look at
// the actor and the subject again in the transaction of the act, and lock both:
// nobody acts with a permission that they lost a moment ago, or on somebody who
// has risen meanwhile.
type Authority struct {
	Actor      UserID
	Permission Permission
	From       netip.Addr
}

// Terminal is the authority of whoever runs the program core itself, over everybody. It
// is nobody's account, and has no address.
var Terminal = Authority{Permission: SuperAdministrator + 1}

// NewAuthority returns the authority of a user at an address. It returns a
// Forbidden fault unless they are an administrator.
func NewAuthority(user User, from netip.Addr) (Authority, error) {
	switch {
	case user.Permission == Banned:
		return Authority{}, ErrBanned
	case user.Permission < Administrator:
		return Authority{}, fault.New(fault.Forbidden, "Only administrators may do this.")
	default:
		return Authority{Actor: user.ID, Permission: user.Permission, From: from}, nil
	}
}

// Over returns a Forbidden fault unless the actor may act on a user, whose
// permission must be lower than the actor's own. So nobody acts on themself.
func (a Authority) Over(user User) error {
	if user.Permission >= a.Permission {
		return fault.New(fault.Forbidden, "The user's permission must be lower than yours.")
	}
	return nil
}

// OverThingsOf returns a Forbidden fault unless the actor may act on what a user
// owns: somebody's whose permission is lower, or the actor's own.
func (a Authority) OverThingsOf(owner User) error {
	if owner.ID == a.Actor {
		return nil
	}
	return a.Over(owner)
}

// Grants returns a Forbidden fault unless the actor may give somebody a
// permission, which must be lower than the actor's own. So only super
// administrators make administrators, and nobody makes another of them.
func (a Authority) Grants(permission Permission) error {
	if permission >= a.Permission {
		return fault.New(fault.Forbidden, "Only a super administrator may make somebody an administrator.")
	}
	return nil
}
