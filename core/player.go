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

// PlayerStore holds players. Methods that change a player take its owner: an unknown player is a
// NotFound fault, and one of another user a Forbidden fault. All record the keys of the mappings
// that they change.
type PlayerStore interface {
	// Players lists the players of the token's user by pid.
	Players(ctx context.Context, token VerifiedToken) ([]Player, error)

	// CreatePlayer adds a player. A taken name is a Duplicate fault with the field name, a reached
	// quota a Refused one, and a cost that the user cannot pay a ScoreTooLow one.
	CreatePlayer(ctx context.Context, owner UserID, player NewPlayer, pricing Pricing) (Player, error)

	// DeletePlayer deletes a player.
	DeletePlayer(ctx context.Context, owner UserID, player PlayerID) error

	// RenamePlayer renames a player. A taken name is a fault as in CreatePlayer.
	RenamePlayer(ctx context.Context, owner UserID, player PlayerID, name NewPlayer) (Player, error)

	// SetPlayerTextures applies all given textures or none. Each must exist (NotFound), have a type
	// that fits the slot (Invalid, with its field), and be public, uploaded by the owner or in the
	// owner's closet (Forbidden).
	SetPlayerTextures(ctx context.Context, owner UserID, player PlayerID, selection TextureSelection) (Player, error)

	// ClearPlayerTextures takes textures off.
	ClearPlayerTextures(ctx context.Context, owner UserID, player PlayerID, skin, cape bool) (Player, error)
}

// PlayerLimits bounds the names of players.
type PlayerLimits struct {
	NamePattern string `env:"NAME_PATTERN" envDefault:"[A-Za-z0-9_]+" help:"regular expression (RE2) that a player's whole name must match; names with / ? # %, with a dot in front, or with .png, .webp or .json at the end are always rejected"`
	NameAllowed string `env:"NAME_ALLOWED" example:"letters, digits and spaces" help:"description of the characters that NAME_PATTERN allows, for error messages; empty: a description of the default pattern, or any other pattern itself"`
	NameMin     int    `env:"NAME_MIN" envDefault:"3" help:"least characters in a player's name"`
	NameMax     int    `env:"NAME_MAX" envDefault:"16" help:"most characters in a player's name"`
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
		return nil, fmt.Errorf("PLAYER_NAME_PATTERN is no regular expression: %w", err)
	}
	switch {
	case limits.NameMin < 1 || limits.NameMax < limits.NameMin:
		return nil, fmt.Errorf("PLAYER_NAME_MIN is %d, but must be at least 1 and no more than PLAYER_NAME_MAX, %d", limits.NameMin, limits.NameMax)
	case limits.NameMax > MaxName:
		return nil, fmt.Errorf("PLAYER_NAME_MAX is %d, but must be at most %d", limits.NameMax, MaxName)
	}
	return &PlayerNames{pattern: pattern, min: limits.NameMin, max: limits.NameMax, rule: limits.Rule()}, nil
}

// check validates a player name that was sent in a field, and returns it trimmed.
func (n *PlayerNames) check(field, name string) (NewPlayer, error) {
	name = strings.TrimSpace(name)
	switch length := utf8.RuneCountInString(name); {
	case !isPrintable(name) || length < n.min || length > n.max || !n.pattern.MatchString(name):
		return NewPlayer{}, fault.Field(field, "%s", n.rule)
	case !legible(name):
		return NewPlayer{}, fault.Field(field, "A player name has a visible character, and no invisible ones and controls of direction.")
	case !addressable(name):
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

// addressable reports whether the path of a URL, such as /skin/{name}.png, can hold a player name.
func addressable(name string) bool {
	lower := strings.ToLower(name)
	return !strings.ContainsAny(name, "/?#%") && !strings.HasPrefix(name, ".") &&
		!slices.ContainsFunc(edgeproto.Suffixes(), func(suffix string) bool { return strings.HasSuffix(lower, suffix) })
}

// playerStore is the store that Players needs.
type playerStore interface {
	PlayerStore
	PlayerAdminStore
}

// Players are the game characters of users.
type Players struct {
	store   playerStore
	names   *PlayerNames
	pricing Pricing
}

// NewPlayers returns the players of a store.
func NewPlayers(store playerStore, names *PlayerNames, quotas Quotas, scores Scores) *Players {
	return &Players{store: store, names: names, pricing: Pricing{Quotas: quotas, Cost: scores.Player, Refund: scores.RefundPlayer}}
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

// Delete deletes a player of the caller.
func (p *Players) Delete(ctx context.Context, caller Caller, player PlayerID) error {
	return p.store.DeletePlayer(ctx, caller.ID, player)
}

// Rename renames a player of the caller.
func (p *Players) Rename(ctx context.Context, caller Caller, player PlayerID, name string) (Player, error) {
	newName, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.RenamePlayer(ctx, caller.ID, player, newName)
}

// SetTextures applies textures to a player of the caller: all that are given, or none.
func (p *Players) SetTextures(ctx context.Context, caller Caller, player PlayerID, selection TextureSelection) (Player, error) {
	if err := selection.check(); err != nil {
		return Player{}, err
	}
	return p.store.SetPlayerTextures(ctx, caller.ID, player, selection)
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

var errNoSlot = fault.Field("type", "Say what to take off: skin, cape, or both.")

// ClearTextures takes textures off a player of the caller.
func (p *Players) ClearTextures(ctx context.Context, caller Caller, player PlayerID, skin, cape bool) (Player, error) {
	if !skin && !cape {
		return Player{}, errNoSlot
	}
	return p.store.ClearPlayerTextures(ctx, caller.ID, player, skin, cape)
}
