package core

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Profile is a player with what it wears, as games show it.
type Profile struct {
	NamedPlayer
	Skin skin.Hash // zero for none
	Slim bool      // whether the skin has slim arms
	Cape skin.Hash // zero for none
}

// ProfileStore finds players for games.
type ProfileStore interface {
	// Profile returns the profile of a player, and the cursor of the snapshot in which it was read;
	// or a NotFound fault.
	Profile(ctx context.Context, player uuid.UUID) (Profile, edgeproto.Cursor, error)

	// PlayersNamed returns the players with comparison keys, by these, and the cursor of the snapshot in
	// which they were read, if there are any. Unknown keys are left out.
	PlayersNamed(ctx context.Context, keys []string) (map[string]NamedPlayer, edgeproto.Cursor, error)
}

// errNoPlayer is the fault of a profile that does not exist.
var errNoPlayer = fault.New(fault.NotFound, "There is no such player.")

// MaxProfileNames is how many names one request may look up.
const MaxProfileNames = 100

// Property is a property of a profile, in the form that games verify.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Signature is empty if no signature was asked for.
	Signature string `json:"signature,omitempty"`
}

// ProfileLimits bounds the memory for profiles.
// Its setting is CORE_YGGDRASIL_PROFILE_BYTES.
type ProfileLimits struct {
	Bytes int64 `env:"PROFILE_BYTES" envDefault:"33554432" min:"65536" help:"memory for profiles of players and their signatures, and an eighth of it for names, in bytes: about 900 a player; one that does not fit costs a query and 5 ms of a processor for a new signature"`
}

// namesShare is the part of ProfileLimits.Bytes for names: one takes a quarter of what a profile does,
// and fewer are looked up.
const namesShare = 8

// Profiles tells games what players wear.
//
// Games accept textures of a profile only with a signature over its property. Signing takes 5.3 ms
// of a processor with a key of 4096 bits, so signatures are cached with the profiles.
type Profiles struct {
	cache       *profileCache
	names       *nameCache
	key         *ProfileKey
	texturesURL string // without a slash at the end
	now         Clock
	uploadable  Property
	limiter     *cpuLimiter

	mu      sync.Mutex
	signing map[Profile]*signing
}

// signing is a profile that is being signed. property and err are valid once done is closed.
type signing struct {
	done     chan struct{}
	property Property
	err      error
}

// signersPerWorker is how many signatures may wait for each processor: a few seconds' work. A game
// server that restarts asks for all its players at once.
const signersPerWorker = 512

// NewProfiles returns the profiles of a store. The feed has the store's changes, and does not run yet.
// Textures are at texturesURL, under /textures/.
func NewProfiles(store ProfileStore, unknown *UnknownLimit, feed *Feed, key *ProfileKey, limits ProfileLimits, texturesURL string, now Clock) (*Profiles, error) {
	p := &Profiles{
		cache: newProfileCache(store, unknown, feed, limits.Bytes-limits.Bytes/namesShare, key.private.Size()),
		names: newNameCache(store, unknown, feed, limits.Bytes/namesShare),
		key:   key, texturesURL: strings.TrimRight(texturesURL, "/"), now: now,
		limiter:    newCPULimiter(max(1, runtime.GOMAXPROCS(0)-1), signersPerWorker, "Too many profiles are being signed at the moment. Please try again."),
		signing:    map[Profile]*signing{},
		uploadable: Property{Name: "uploadableTextures", Value: "skin,cape"},
	}
	var err error
	p.uploadable.Signature, err = key.sign(p.uploadable.Value)
	return p, err
}

// Key returns the key that signs profiles.
func (p *Profiles) Key() *ProfileKey { return p.key }

// Find returns the profile of a player, or a NotFound fault.
func (p *Profiles) Find(ctx context.Context, player uuid.UUID) (Profile, error) {
	return p.cache.find(ctx, player)
}

// Named returns the players with names, compared without case, in any order. Unknown names are left
// out. More than MaxProfileNames are an Invalid fault.
func (p *Profiles) Named(ctx context.Context, names []string) ([]NamedPlayer, error) {
	if len(names) > MaxProfileNames {
		return nil, fault.Field("names", "%d names are too many: at most %d can be looked up at once.", len(names), MaxProfileNames)
	}
	keys := make([]string, 0, len(names))
	for _, name := range names {
		if isPrintable(name) {
			keys = append(keys, casefold.Key(name))
		}
	}
	slices.Sort(keys)
	return p.names.find(ctx, slices.Compact(keys))
}

// Properties returns the properties of a profile, unsigned.
func (p *Profiles) Properties(profile Profile) ([]Property, error) {
	textures, err := p.textures(profile, p.now().UnixMilli())
	return []Property{textures, {Name: p.uploadable.Name, Value: p.uploadable.Value}}, err
}

// SignedProperties returns the properties of a profile with signatures. It returns an Unavailable
// fault if too many other profiles are being signed.
func (p *Profiles) SignedProperties(ctx context.Context, profile Profile) ([]Property, error) {
	textures, err := p.signedTextures(ctx, profile)
	return []Property{textures, p.uploadable}, err
}

// TexturesURL returns the address of the edges, without a slash at the end.
func (p *Profiles) TexturesURL() string { return p.texturesURL }

// TextureURL returns the address of a texture's file.
func (p *Profiles) TextureURL(hash skin.Hash) string {
	return p.texturesURL + "/textures/" + hash.String()
}

// texturesPayload is the value of the property textures.
type texturesPayload struct {
	Timestamp   int64  `json:"timestamp"` // of the value, in milliseconds
	ProfileID   string `json:"profileId"`
	ProfileName string `json:"profileName"`
	Textures    Worn   `json:"textures"`
}

// Worn is what a profile wears, in the form that games read.
type Worn struct {
	Skin *texturePayload `json:"SKIN,omitempty"`
	Cape *texturePayload `json:"CAPE,omitempty"`
}

type texturePayload struct {
	URL      string           `json:"url"`
	Metadata *textureMetadata `json:"metadata,omitempty"`
}

type textureMetadata struct {
	Model string `json:"model"`
}

// Worn returns what a profile wears.
func (p *Profiles) Worn(profile Profile) (worn Worn) {
	if profile.Skin != (skin.Hash{}) {
		worn.Skin = &texturePayload{URL: p.TextureURL(profile.Skin)}
		if profile.Slim {
			worn.Skin.Metadata = &textureMetadata{Model: "slim"}
		}
	}
	if profile.Cape != (skin.Hash{}) {
		worn.Cape = &texturePayload{URL: p.TextureURL(profile.Cape)}
	}
	return worn
}

// textures returns the property with the textures of a profile as of a time in milliseconds,
// unsigned. The same profile and time give the same property.
func (p *Profiles) textures(profile Profile, at int64) (Property, error) {
	payload := texturesPayload{at, hex.EncodeToString(profile.UUID[:]), profile.Name, p.Worn(profile)}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return Property{}, fmt.Errorf("encode the textures of a profile: %w", err)
	}
	return Property{Name: "textures", Value: base64.StdEncoding.EncodeToString(encoded)}, nil
}

// signedTextures returns the property with the textures of a profile. Concurrent callers for one
// profile share a signature.
func (p *Profiles) signedTextures(ctx context.Context, profile Profile) (Property, error) {
	for {
		if property, ok, err := p.cachedTextures(profile); ok {
			return property, err
		}
		s, isFirst := p.beginSigning(profile)
		if isFirst {
			p.sign(ctx, profile, s)
			return s.property, s.err
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return Property{}, fmt.Errorf("wait for a signature: %w", ctx.Err())
		}
		// The caller that failed to sign may have had less time, or a busier network.
		if s.err == nil {
			return s.property, nil
		}
	}
}

// cachedTextures returns the property with the textures of a profile if its signature is cached.
func (p *Profiles) cachedTextures(profile Profile) (property Property, ok bool, err error) {
	signature, signedAt := p.cache.signature(profile)
	if signature == nil {
		return Property{}, false, nil
	}
	property, err = p.textures(profile, signedAt)
	property.Signature = base64.StdEncoding.EncodeToString(signature)
	return property, true, err
}

// beginSigning returns the signing of a profile that is under way, and whether the caller has to do
// it.
func (p *Profiles) beginSigning(profile Profile) (s *signing, isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = p.signing[profile]; s != nil {
		return s, false
	}
	s = &signing{done: make(chan struct{})}
	p.signing[profile] = s
	return s, true
}

// sign signs a profile, and caches the signature.
func (p *Profiles) sign(ctx context.Context, profile Profile, s *signing) {
	err := p.limiter.do(ctx, func() {
		var ok bool
		// Another caller may have ended since this one looked.
		if s.property, ok, s.err = p.cachedTextures(profile); ok {
			return
		}
		at := p.now().UnixMilli()
		if s.property, s.err = p.textures(profile, at); s.err != nil {
			return
		}
		var signature []byte
		if signature, s.err = p.key.signRaw(s.property.Value); s.err != nil {
			return
		}
		s.property.Signature = base64.StdEncoding.EncodeToString(signature)
		p.cache.addSignature(profile, signature, at)
	})
	if err != nil {
		s.err = err
	}
	p.mu.Lock()
	delete(p.signing, profile)
	p.mu.Unlock()
	close(s.done)
}
