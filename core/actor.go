package core

import (
	"net/netip"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Actor is that of an administrator who acts, and where from. Stores look at
// the actor and the subject again in the transaction of the act, and lock both:
// nobody acts with a permission that they lost a moment ago, or on somebody who
// has risen meanwhile.
type Actor struct {
	ID         UserID
	Permission Permission
	From       netip.Addr
}

// CLIActor is the authority of whoever runs the program core itself, over everybody. It
// is nobody's account, and has no address.
var CLIActor = Actor{Permission: SuperAdministrator + 1}

// NewActor returns the authority of a user at an address. It returns a
// Forbidden fault unless they are an administrator.
func NewActor(user User, from netip.Addr) (Actor, error) {
	switch {
	case user.Permission == Banned:
		return Actor{}, ErrBanned
	case user.Permission < Administrator:
		return Actor{}, fault.New(fault.Forbidden, "Only administrators may do this.")
	default:
		return Actor{ID: user.ID, Permission: user.Permission, From: from}, nil
	}
}

// CanModerate returns a Forbidden fault unless the actor may act on a user, whose
// permission must be lower than the actor's own. So nobody acts on themself.
func (a Actor) CanModerate(user User) error {
	if user.Permission >= a.Permission {
		return fault.New(fault.Forbidden, "The user's permission must be lower than yours.")
	}
	return nil
}

// CanModerateContentOf returns a Forbidden fault unless the actor may act on what a user
// owns: somebody's whose permission is lower, or the actor's own.
func (a Actor) CanModerateContentOf(owner User) error {
	if owner.ID == a.ID {
		return nil
	}
	return a.CanModerate(owner)
}

// CanGrant returns a Forbidden fault unless the actor may give somebody a
// permission, which must be lower than the actor's own. So only super
// administrators make administrators, and nobody makes another of them.
func (a Actor) CanGrant(permission Permission) error {
	if permission >= a.Permission {
		return fault.New(fault.Forbidden, "Only a super administrator may make somebody an administrator.")
	}
	return nil
}
