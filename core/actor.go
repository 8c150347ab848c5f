package core

import (
	"net/netip"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Actor is the user or program that makes a change, and the address that the request comes from. An
// owner changes their own things: in one round trip, and without an entry of the audit log. Other
// actors are administrators. For them, stores first read and lock the rows of the actor and of the
// subject in the transaction of the change, so that a permission that changed meanwhile counts. They
// write one entry of the audit log with the change, and none with a failure.
type Actor struct {
	ID         UserID
	Permission Permission
	From       netip.Addr
	Owner      bool // changes only what is the user's own
}

// Owner returns the caller as the owner of their things.
func (c Caller) Owner() Actor { return Actor{ID: c.ID, Permission: c.Permission, Owner: true} }

// Owns reports whether the actor is the user, and acts as the owner.
func (a Actor) Owns(user UserID) bool { return a.Owner && a.ID == user }

// Registrant is the actor of a registration: the account to add is its own.
var Registrant = Actor{Owner: true}

// CLIActor is the actor of the command line, above all users. It has no account and no address.
var CLIActor = Actor{Permission: SuperAdministrator + 1}

// NewActor returns the actor for a user at an address. Other users than administrators get a
// Forbidden fault.
func NewActor(user User, from netip.Addr) (Actor, error) {
	switch {
	case user.Permission == Banned:
		return Actor{}, ErrBanned(user)
	case user.Permission < Administrator:
		return Actor{}, fault.New(fault.Forbidden, "Only administrators may do this.")
	default:
		return Actor{ID: user.ID, Permission: user.Permission, From: from}, nil
	}
}

// CanModerate returns a Forbidden fault unless the user's permission is lower than the actor's. So
// actors cannot act on themselves.
func (a Actor) CanModerate(user User) error {
	if user.Permission >= a.Permission {
		return fault.New(fault.Forbidden, "The user's permission must be lower than yours.")
	}
	return nil
}

// CanModerateContentOf returns a Forbidden fault unless the actor may act on what a user owns: the
// actor's own content, or a user's with a lower permission.
func (a Actor) CanModerateContentOf(owner User) error {
	if owner.ID == a.ID {
		return nil
	}
	return a.CanModerate(owner)
}

// CanGrant returns a Forbidden fault unless the permission is lower than the actor's. So only super
// administrators make administrators, and only CLIActor makes super administrators.
func (a Actor) CanGrant(permission Permission) error {
	if permission >= a.Permission {
		return fault.New(fault.Forbidden, "Only a super administrator may make somebody an administrator.")
	}
	return nil
}
