package core

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Player is a named game character of a user.
type Player struct {
	ID           PlayerID
	Owner        UserID
	UUID         uuid.UUID // random; stays when the name changes
	Name         string
	Skin         TextureID // 0 when none is applied
	Cape         TextureID // 0 when none is applied
	LastModified time.Time
}

// NewPlayer is a validated player name with its comparison key. PlayerNames.check returns it:
// stores take no other names.
type NewPlayer struct {
	Name, Key string
}

// TextureSelection is which textures to apply; nil leaves that one as it is.
type TextureSelection struct {
	Skin, Cape *TextureID
}

// PlayerStore holds players. Of methods that take an actor, an unknown player is a NotFound fault, and
// one of another user a Forbidden fault, unless the actor is an administrator and
// Actor.CanModerateContentOf the player's owner. The rights of the owner count, not the actor's. All
// record the keys of the mappings that they change.
type PlayerStore interface { //nolint:interfacebloat // Players, its only user, calls each method
	// Players lists the players of the token's user by pid.
	Players(ctx context.Context, token VerifiedToken) ([]Player, error)

	// CreatePlayer adds a player. A taken name is a Duplicate fault with the field name, a reached
	// quota a Refused one, and a cost that the user cannot pay a ScoreTooLow one.
	CreatePlayer(ctx context.Context, owner UserID, player NewPlayer, pricing Pricing) (Player, error)

	// FindPlayers lists players, the latest first.
	FindPlayers(ctx context.Context, query PlayerQuery) (Page[FoundPlayer], error)

	// DeletePlayer deletes a player. For a day its owner can restore it, and no other user can take its name.
	DeletePlayer(ctx context.Context, by Actor, player PlayerID) error

	// DeletedPlayers lists the players of the token's user that can be restored, the last one first. Their
	// LastModified is when they were deleted.
	DeletedPlayers(ctx context.Context, token VerifiedToken) ([]Player, error)

	// RestorePlayer restores a player that its owner had when it was deleted, else a NotFound fault. Textures that
	// the owner may no longer use stay off. It takes the refund of the deletion back, and otherwise costs nothing.
	// A taken name, a reached quota and a score that is too low are faults as in CreatePlayer.
	RestorePlayer(ctx context.Context, owner UserID, player PlayerID, quotas Quotas) (Player, error)

	// TrimDeletedPlayers deletes players that can no longer be restored and returns how many.
	TrimDeletedPlayers(ctx context.Context) (int, error)

	// RenamePlayer renames a player. A taken name is a fault as in CreatePlayer.
	RenamePlayer(ctx context.Context, by Actor, player PlayerID, name NewPlayer) (Player, error)

	// SetPlayerTextures applies all given textures or none. Each must exist (NotFound), have a type
	// that fits the slot (Invalid, with its field), and be public, uploaded by the owner or in the
	// owner's closet (Forbidden).
	SetPlayerTextures(ctx context.Context, by Actor, player PlayerID, selection TextureSelection) (Player, error)

	// ClearPlayerTextures takes textures off.
	ClearPlayerTextures(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error)

	// MovePlayer gives a player to another user, for an administrator. That user must exist
	// (NotFound), must pass Actor.CanModerateContentOf (Forbidden), and must have fewer players than
	// the quota (Refused). Textures that the new owner may not use are taken off.
	MovePlayer(ctx context.Context, by Actor, player PlayerID, owner UserID, quotas Quotas) (Player, error)
}

// FoundPlayer is a player with the nickname of its owner, and the names of what it wears.
type FoundPlayer struct {
	Player
	OwnerNickname, SkinName, CapeName string
}

// PlayerQuery selects players for an administrator. Zero values select all.
type PlayerQuery struct {
	ID            PlayerID
	Owner         UserID
	Name          string // part of the name, case-insensitive
	Page, PerPage int
}

// PlayerLimits bounds the names of players.
// Its settings are CORE_PLAYER_NAME_PATTERN, CORE_PLAYER_NAME_ALLOWED, CORE_PLAYER_NAME_MIN,
// CORE_PLAYER_NAME_MAX.
type PlayerLimits struct {
	NamePattern string `env:"NAME_PATTERN" envDefault:"[A-Za-z0-9_]+" help:"regular expression (RE2) that a player's whole name must match; names with / ? # %, with a dot in front, or with .png, .webp or .json at the end are always rejected"`
	NameAllowed string `env:"NAME_ALLOWED" example:"letters, digits and spaces" help:"description of the characters that NAME_PATTERN allows, for error messages; empty: a description of the default pattern, or any other pattern itself"`
	NameMin     int    `env:"NAME_MIN" envDefault:"3" min:"1" max:"64" help:"least characters in a player's name"`
	NameMax     int    `env:"NAME_MAX" envDefault:"16" min:"1" max:"64" help:"most characters in a player's name"`
}

// The default pattern, and its description in error messages.
const (
	defaultPattern = "[A-Za-z0-9_]+"
	defaultAllowed = "letters A to Z, digits and underscores"
)

// Rule returns the sentence that tells users which names are allowed.
func (l PlayerLimits) Rule() string {
	length := fmt.Sprintf("%d to %d characters", l.NameMin, l.NameMax)
	if l.NameMin == l.NameMax {
		length = fmt.Sprintf("exactly %d characters", l.NameMax)
	}
	allowed := strings.TrimSpace(l.NameAllowed)
	if allowed == "" && l.NamePattern == defaultPattern {
		allowed = defaultAllowed
	}
	if allowed == "" {
		return fmt.Sprintf("A player name has %s and matches the regular expression %s", length, l.NamePattern)
	}
	return fmt.Sprintf("A player name has %s: %s.", length, strings.TrimSuffix(allowed, "."))
}

// PlayerNames validates the names of players.
type PlayerNames struct {
	pattern  *regexp.Regexp
	min, max int
	rule     string
}

// NewPlayerNames returns a validator for the limits, or an error that names the invalid setting.
func NewPlayerNames(limits PlayerLimits) (*PlayerNames, error) {
	pattern, err := regexp.Compile(`^(?:` + limits.NamePattern + `)$`)
	if err != nil {
		return nil, config.Errorf("PLAYER_NAME_PATTERN", "is no regular expression: %w", err)
	}
	return &PlayerNames{pattern: pattern, min: limits.NameMin, max: limits.NameMax, rule: limits.Rule()}, nil
}

// check validates a player name that was sent in a field, and returns it trimmed.
func (n *PlayerNames) check(field, name string) (NewPlayer, error) {
	name = strings.TrimSpace(name)
	switch length := utf8.RuneCountInString(name); {
	case !isPrintable(name) || length < n.min || length > n.max || !n.pattern.MatchString(name):
		return NewPlayer{}, fault.Field(field, "%s", n.rule)
	case !isLegible(name):
		return NewPlayer{}, fault.Field(field, "A player name has a visible character, and no invisible ones and controls of direction.")
	case !isURLSafe(name):
		return NewPlayer{}, fault.Field(field, "A player name has none of / ? # %%, does not begin with a dot, and does not end in %s.", strings.Join(edgeproto.Suffixes(), ", "))
	default:
		return NewPlayer{Name: name, Key: casefold.Key(name)}, nil
	}
}

// optional validates a name as check does; an empty one stands for no player.
func (n *PlayerNames) optional(field, name string) (NewPlayer, error) {
	if strings.TrimSpace(name) == "" {
		return NewPlayer{}, nil
	}
	return n.check(field, name)
}

// isURLSafe reports whether the path of a URL, such as /skin/{name}.png, can hold a player name.
func isURLSafe(name string) bool {
	lower := strings.ToLower(name)
	return !strings.ContainsAny(name, "/?#%") && !strings.HasPrefix(name, ".") &&
		!slices.ContainsFunc(edgeproto.Suffixes(), func(suffix string) bool { return strings.HasSuffix(lower, suffix) })
}

// Players are the game characters of users.
type Players struct {
	store   PlayerStore
	names   *PlayerNames
	pricing Pricing
}

// NewPlayers returns the players of a store.
func NewPlayers(store PlayerStore, names *PlayerNames, quotas Quotas, prices ScorePrices) *Players {
	return &Players{store: store, names: names, pricing: Pricing{Quotas: quotas, Cost: prices.Player, Refund: prices.RefundPlayer}}
}

// List returns the players of the token's user by pid.
func (p *Players) List(ctx context.Context, token VerifiedToken) ([]Player, error) {
	return p.store.Players(ctx, token)
}

// Create adds a player for the caller.
func (p *Players) Create(ctx context.Context, caller Caller, name string) (Player, error) {
	player, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.CreatePlayer(ctx, caller.ID, player, p.pricing)
}

// Find returns a page of the players that match a query. A page past the end is empty.
func (p *Players) Find(ctx context.Context, query PlayerQuery) (Page[FoundPlayer], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxSearchPage)
	wrong.addPart("name", &query.Name, MaxName)
	if err := wrong.fault(); err != nil {
		return Page[FoundPlayer]{}, err
	}
	return p.store.FindPlayers(ctx, query)
}

// Delete deletes a player.
func (p *Players) Delete(ctx context.Context, by Actor, player PlayerID) error {
	return p.store.DeletePlayer(ctx, by, player)
}

// Restorable is for how long a deleted player can be restored.
const Restorable = 24 * time.Hour

// Deleted lists the players of the token's user that can be restored, the last one first. Their LastModified is when
// they were deleted.
func (p *Players) Deleted(ctx context.Context, token VerifiedToken) ([]Player, error) {
	return p.store.DeletedPlayers(ctx, token)
}

// Restore restores a deleted player of the caller.
func (p *Players) Restore(ctx context.Context, caller Caller, player PlayerID) (Player, error) {
	return p.store.RestorePlayer(ctx, caller.ID, player, p.pricing.Quotas)
}

// Trim deletes players that can no longer be restored and returns how many.
func (p *Players) Trim(ctx context.Context) (int, error) { return p.store.TrimDeletedPlayers(ctx) }

// Rename renames a player.
func (p *Players) Rename(ctx context.Context, by Actor, player PlayerID, name string) (Player, error) {
	newName, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.RenamePlayer(ctx, by, player, newName)
}

// Move gives a player to another user, for an administrator.
func (p *Players) Move(ctx context.Context, by Actor, player PlayerID, owner UserID) (Player, error) {
	if owner < 1 {
		return Player{}, fault.Field("uid", "A uid is at least 1.")
	}
	return p.store.MovePlayer(ctx, by, player, owner, p.pricing.Quotas)
}

// SetTextures applies textures to a player: all that are given, or none.
func (p *Players) SetTextures(ctx context.Context, by Actor, player PlayerID, selection TextureSelection) (Player, error) {
	if err := selection.check(); err != nil {
		return Player{}, err
	}
	return p.store.SetPlayerTextures(ctx, by, player, selection)
}

// check returns a fault unless there is something to apply.
func (s TextureSelection) check() error {
	if s.Skin == nil && s.Cape == nil {
		return &fault.Error{Kind: fault.Invalid, Message: "Give a skin, a cape, or both.", Fields: map[string][]string{
			"skin": {"Give a skin, a cape, or both."}, "cape": {"Give a skin, a cape, or both."},
		}}
	}
	var wrong fieldFaults
	check := func(field string, tid *TextureID) {
		if tid != nil && *tid < 1 {
			wrong.add(fault.Field(field, "A TID is at least 1; to take the %s off, use DELETE.", field))
		}
	}
	check("skin", s.Skin)
	check("cape", s.Cape)
	return wrong.fault()
}

// ClearTextures takes textures off a player.
func (p *Players) ClearTextures(ctx context.Context, by Actor, player PlayerID, skin, cape bool) (Player, error) {
	if !skin && !cape {
		return Player{}, fault.Field("type", "Say what to take off: skin, cape, or both.")
	}
	return p.store.ClearPlayerTextures(ctx, by, player, skin, cape)
}
