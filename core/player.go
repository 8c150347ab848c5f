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
	"github.com/veneer-skins/veneer/shared/fault"
)

// Player is a named character that a user owns.
type Player struct {
	ID           PlayerID
	Owner        UserID
	UUID         uuid.UUID // random; stays when the name changes
	Name         string
	Skin         TextureID // 0 when none is applied
	Cape         TextureID // 0 when none is applied
	LastModified time.Time
}

// NewPlayer is the name of a player to be, with its comparison key. Players
// check it: none but theirs must reach a store.
type NewPlayer struct {
	Name, Key string
}

// TextureSlots are the textures to apply; a nil slot stays as it is.
type TextureSlots struct {
	Skin, Cape *TextureID
}

// PlayerStore keeps players. Methods that change a player take its owner: they
// return a NotFound fault when there is no such player and a Forbidden one when
// it is somebody else's. All that change what edges remember name the keys.
type PlayerStore interface {
	// Players lists the players of a ticket's user by pid.
	Players(ctx context.Context, token VerifiedToken) ([]Player, error)

	// CreatePlayer adds a player. It returns a Duplicate fault that names the field
	// name when that is taken, a Refused one when the user has as many as the quota
	// already, and a ScoreTooLow one when they cannot pay.
	CreatePlayer(ctx context.Context, owner UserID, player NewPlayer, pricing Pricing) (Player, error)

	// DeletePlayer removes a player.
	DeletePlayer(ctx context.Context, owner UserID, player PlayerID) error

	// RenamePlayer renames a player; taken names are as with CreatePlayer.
	RenamePlayer(ctx context.Context, owner UserID, player PlayerID, name NewPlayer) (Player, error)

	// SetPlayerTextures applies textures, all that are given or none. Each must exist
	// (NotFound), be of a type that fits the slot (Invalid, naming it), and be
	// public, the owner's own or in the owner's closet (Forbidden).
	SetPlayerTextures(ctx context.Context, owner UserID, player PlayerID, slots TextureSlots) (Player, error)

	// ClearPlayerTextures empties slots.
	ClearPlayerTextures(ctx context.Context, owner UserID, player PlayerID, skin, cape bool) (Player, error)
}

// PlayerLimits says what players may be called.
type PlayerLimits struct {
	NamePattern string `env:"NAME_PATTERN" envDefault:"[A-Za-z0-9_]+" help:"regular expression (RE2) that a player's whole name must match; names with / ? # %, with a dot in front, or with .png, .webp or .json at the end are refused whatever it says"`
	NameAllowed string `env:"NAME_ALLOWED" example:"letters, digits and spaces" help:"the characters that NAME_PATTERN allows, in words for people whose name is refused; empty: the words for the default pattern, and any other pattern as it is"`
	NameMin     int    `env:"NAME_MIN" envDefault:"3" help:"least characters in a player's name"`
	NameMax     int    `env:"NAME_MAX" envDefault:"16" help:"most characters in a player's name"`
}

// The words for the pattern that holds unless settings say otherwise.
const (
	defaultPattern = "[A-Za-z0-9_]+"
	defaultAllowed = "letters A to Z, digits and underscores"
)

// rule returns the sentence that tells people which names are allowed.
func (l PlayerLimits) rule() string {
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

// PlayerNames knows which names players may have.
type PlayerNames struct {
	pattern  *regexp.Regexp
	min, max int
	rule     string
}

// NewPlayerNames returns the rule that the limits describe, or an error that
// names the setting which is wrong.
func NewPlayerNames(limits PlayerLimits) (*PlayerNames, error) {
	pattern, err := regexp.Compile(`^(?:` + limits.NamePattern + `)$`)
	if err != nil {
		return nil, fmt.Errorf("PLAYER_NAME_PATTERN is no regular expression: %w", err)
	}
	switch {
	case limits.NameMin < 1 || limits.NameMax < limits.NameMin:
		return nil, fmt.Errorf("PLAYER_NAME_MIN is %d, but must be at least 1 and no more than PLAYER_NAME_MAX, %d", limits.NameMin, limits.NameMax)
	case limits.NameMax > maxName:
		return nil, fmt.Errorf("PLAYER_NAME_MAX is %d, but must be at most %d", limits.NameMax, maxName)
	}
	return &PlayerNames{pattern: pattern, min: limits.NameMin, max: limits.NameMax, rule: limits.rule()}, nil
}

// check returns a name that was sent in a field, trimmed, if a player may have
// it.
func (n *PlayerNames) check(field, name string) (NewPlayer, error) {
	name = strings.TrimSpace(name)
	switch length := utf8.RuneCountInString(name); {
	case !isPrintable(name) || length < n.min || length > n.max || !n.pattern.MatchString(name):
		return NewPlayer{}, fault.Field(field, "%s", n.rule)
	case !legible(name):
		return NewPlayer{}, fault.Field(field, "A player name has a visible character, and no invisible ones and controls of direction.")
	case !addressable(name):
		return NewPlayer{}, fault.Field(field, "A player name has none of / ? # %%, does not begin with a dot, and does not end in %s.", strings.Join(suffixes, ", "))
	default:
		return NewPlayer{Name: name, Key: casefold.Key(name)}, nil
	}
}

// optional returns a name as check does, or none if the field is empty.
func (n *PlayerNames) optional(field, name string) (NewPlayer, error) {
	if strings.TrimSpace(name) == "" {
		return NewPlayer{}, nil
	}
	return n.check(field, name)
}

// suffixes are those that edges take off the end of a path before they look for a
// player (edge/api/subject.go).
var suffixes = []string{".png", ".webp", ".json"}

// addressable reports whether a player of a name can be asked for by the path of a URL,
// such as /skin/{name}.png.
func addressable(name string) bool {
	lower := strings.ToLower(name)
	return !strings.ContainsAny(name, "/?#%") && !strings.HasPrefix(name, ".") &&
		!slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(lower, suffix) })
}

// playerStore is all that is needed to keep players.
type playerStore interface {
	PlayerStore
	PlayerAdminStore
}

// Players are the characters that users own.
type Players struct {
	store   playerStore
	names   *PlayerNames
	pricing Pricing
}

// NewPlayers returns the players kept in a store.
func NewPlayers(store playerStore, names *PlayerNames, quotas Quotas, scores Scores) *Players {
	return &Players{store: store, names: names, pricing: Pricing{Quotas: quotas, Cost: scores.Player, Refund: scores.RefundPlayer}}
}

// List returns the players of a ticket's user by pid.
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

// Delete removes one of the caller's players.
func (p *Players) Delete(ctx context.Context, caller Caller, player PlayerID) error {
	return p.store.DeletePlayer(ctx, caller.ID, player)
}

// Rename gives one of the caller's players another name.
func (p *Players) Rename(ctx context.Context, caller Caller, player PlayerID, name string) (Player, error) {
	newName, err := p.names.check("name", name)
	if err != nil {
		return Player{}, err
	}
	return p.store.RenamePlayer(ctx, caller.ID, player, newName)
}

// SetTextures applies textures to one of the caller's players: all that are given, or
// none.
func (p *Players) SetTextures(ctx context.Context, caller Caller, player PlayerID, slots TextureSlots) (Player, error) {
	if err := slots.check(); err != nil {
		return Player{}, err
	}
	return p.store.SetPlayerTextures(ctx, caller.ID, player, slots)
}

// check returns a fault unless there is something to apply.
func (s TextureSlots) check() error {
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

// ClearTextures empties slots of one of the caller's players.
func (p *Players) ClearTextures(ctx context.Context, caller Caller, player PlayerID, skin, cape bool) (Player, error) {
	if !skin && !cape {
		return Player{}, errNoSlot
	}
	return p.store.ClearPlayerTextures(ctx, caller.ID, player, skin, cape)
}
