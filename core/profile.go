package core

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/sieve"
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
	// Profile returns the profile of a player, or a NotFound fault.
	Profile(ctx context.Context, player uuid.UUID) (Profile, error)

	// PlayersNamed returns the players with comparison keys, in any order. Unknown keys are left out.
	PlayersNamed(ctx context.Context, keys []string) ([]NamedPlayer, error)
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

// Profiles tells games what players wear.
//
// Games accept textures of a profile only with a signature over its property. Signing takes 5.3 ms
// of a processor with a key of 4096 bits, so signed properties are cached by all that is in them: a
// change of the player is another entry.
type Profiles struct {
	store       ProfileStore
	key         *ProfileKey
	texturesURL string // without a slash at the end
	now         Clock
	uploadable  Property
	workers     *workers

	mu      sync.RWMutex
	signed  *sieve.Cache[Profile, Property]
	signing map[Profile]*signature
}

// signature is a property that is being signed. property and err are valid once done is closed.
type signature struct {
	done     chan struct{}
	property Property
	err      error
}

const (
	// maxSignedProfiles bounds the cache to about 40 MiB: an entry of a key of 4096 bits takes 2.4 KB.
	maxSignedProfiles = 1 << 14
	// signersPerWorker is how many signatures may wait for each processor: a few seconds' work. A game
	// server that restarts asks for all its players at once.
	signersPerWorker = 512
)

// NewProfiles returns the profiles of a store. Textures are at texturesURL, under /textures/.
func NewProfiles(store ProfileStore, key *ProfileKey, texturesURL string, now Clock) (*Profiles, error) {
	p := &Profiles{
		store: store, key: key, texturesURL: strings.TrimRight(texturesURL, "/"), now: now,
		workers: newWorkers(max(1, runtime.GOMAXPROCS(0)-1), signersPerWorker, "Too many profiles are being signed at the moment. Please try again."),
		signed:  sieve.New[Profile, Property](maxSignedProfiles), signing: map[Profile]*signature{},
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
	return p.store.Profile(ctx, player)
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
	if len(keys) == 0 {
		return nil, nil
	}
	return p.store.PlayersNamed(ctx, keys)
}

// Properties returns the properties of a profile, unsigned.
func (p *Profiles) Properties(profile Profile) ([]Property, error) {
	textures, err := p.textures(profile)
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
	Timestamp   int64                     `json:"timestamp"` // of the value, in milliseconds
	ProfileID   string                    `json:"profileId"`
	ProfileName string                    `json:"profileName"`
	Textures    map[string]texturePayload `json:"textures"`
}

type texturePayload struct {
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// textures returns the property with the textures of a profile, unsigned.
func (p *Profiles) textures(profile Profile) (Property, error) {
	payload := texturesPayload{
		Timestamp: p.now().UnixMilli(), ProfileID: hex.EncodeToString(profile.UUID[:]), ProfileName: profile.Name, Textures: map[string]texturePayload{},
	}
	if profile.Skin != (skin.Hash{}) {
		texture := texturePayload{URL: p.TextureURL(profile.Skin)}
		if profile.Slim {
			texture.Metadata = map[string]string{"model": "slim"}
		}
		payload.Textures["SKIN"] = texture
	}
	if profile.Cape != (skin.Hash{}) {
		payload.Textures["CAPE"] = texturePayload{URL: p.TextureURL(profile.Cape)}
	}
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
		p.mu.RLock()
		cached := p.signed.Get(profile)
		p.mu.RUnlock()
		if cached != nil {
			return *cached, nil
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

// beginSigning returns the signature of a profile that is being made, and whether the caller has to
// make it.
func (p *Profiles) beginSigning(profile Profile) (s *signature, isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cached := p.signed.Get(profile); cached != nil {
		s := &signature{done: make(chan struct{}), property: *cached}
		close(s.done)
		return s, false
	}
	s = p.signing[profile]
	if s == nil {
		s, isFirst = &signature{done: make(chan struct{})}, true
		p.signing[profile] = s
	}
	return s, isFirst
}

// sign makes a signature, and caches it.
func (p *Profiles) sign(ctx context.Context, profile Profile, s *signature) {
	err := p.workers.do(ctx, func() {
		if s.property, s.err = p.textures(profile); s.err == nil {
			s.property.Signature, s.err = p.key.sign(s.property.Value)
		}
	})
	if err != nil {
		s.err = err
	}
	p.mu.Lock()
	delete(p.signing, profile)
	if s.err == nil {
		p.signed.Put(profile, s.property, 1)
	}
	p.mu.Unlock()
	close(s.done)
}
