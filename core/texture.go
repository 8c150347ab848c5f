package core

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Texture is an uploaded skin or cape.
type Texture struct {
	ID       TextureID
	Name     string
	Type     skin.Type
	Hash     skin.Hash
	Bytes    int    // size of the stored file
	Uploader UserID // 0 when the uploader is deleted
	Public   bool
	UploadAt time.Time
	Likes    int64 // closets that it is in

	UploaderNickname string // empty when the uploader is deleted
}

// KiB returns the size of the stored file in KiB, rounded up.
func (t Texture) KiB() int { return kib(t.Bytes) }

func kib(bytes int) int { return (bytes + 1023) / 1024 }

// NewTexture describes a texture to add.
type NewTexture struct {
	Name     string
	Type     skin.Type
	Hash     skin.Hash
	Pixels   [32]byte
	Bytes    int
	Uploader UserID
	Public   bool
}

// TextureStore holds textures.
type TextureStore interface {
	// AddTexture adds a texture and puts it into its uploader's closet under its name. It holds the
	// lock on the hash, which Sweep takes too, while it calls put to store the file and until the
	// row is written. If put fails, nothing is added.
	//
	// A texture with the same pixels and type that the uploader may see is a Duplicate fault with
	// the data tid. A quota without room for the texture or the closet item is a Refused fault, a
	// cost that the uploader cannot pay a ScoreTooLow one, and refused pixels are
	// ErrRefusedPixels. In these cases put may not have been called.
	AddTexture(ctx context.Context, texture NewTexture, pricing Pricing, put func(context.Context) error) (Texture, error)

	// CheckTexture returns the fault that AddTexture would return before it calls put; nil for none.
	CheckTexture(ctx context.Context, texture NewTexture, pricing Pricing) error

	// Texture returns a texture, or a NotFound fault.
	Texture(ctx context.Context, texture TextureID) (Texture, error)

	// LibraryTexture returns a texture as a user sees it, 0 for none, or a NotFound fault.
	LibraryTexture(ctx context.Context, user UserID, texture TextureID) (LibraryTexture, error)

	// ChangeTexture changes a texture. An unknown texture is a NotFound fault. An actor that is not
	// its owner must pass Actor.CanModerateContentOf the uploader (Forbidden), if there is one.
	// Another texture with the same pixels and the new type is a Duplicate fault with the data tid. A
	// texture that becomes private is removed from all closets but its uploader's, from the players
	// of other users, and from avatars. An actor that uploaded it is charged if it costs more as a
	// public, or as a private one: a ScoreTooLow fault if they cannot pay. Refused pixels become public
	// for an administrator only: ErrRefusedPixels.
	ChangeTexture(ctx context.Context, by Actor, texture TextureID, change TextureChange, prices ScorePrices) (Texture, error)

	// DeleteTexture deletes a texture, with the checks of ChangeTexture. The texture is removed from
	// all closets and players. Users keep it as their avatar, which is not found from then on. Sweep
	// deletes the file. A deletion by an administrator settles open reports about the texture, and
	// notifies their reporters; with refuse, it adds a refusal of the pixels.
	DeleteTexture(ctx context.Context, by Actor, texture TextureID, refuse bool) error
}

// TextureChange changes properties of a texture; nil keeps a property.
type TextureChange struct {
	Name   *string
	Type   *skin.Type
	Public *bool
}

// Hides reports whether the change makes a public texture private.
func (c *TextureChange) Hides() bool { return c.Public != nil && !*c.Public }

// FileStore holds texture files by hash.
type FileStore interface {
	// Put stores a file; it is durable when Put returns.
	Put(ctx context.Context, hash skin.Hash, file []byte) error
	// Get returns a file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

// TextureLimits bounds uploads.
// Its setting is CORE_UPLOAD_CONCURRENCY.
type TextureLimits struct {
	skin.Limits
	Concurrency int `env:"CONCURRENCY" envDefault:"4" min:"1" help:"most uploads that are processed at a time, at least 1: each takes memory, and a database connection while its file is stored"`
}

// Textures are the skins and capes that users share.
type Textures struct {
	store  textureStore
	files  FileStore
	limits skin.Limits
	quotas Quotas
	prices ScorePrices
	sem    chan struct{} // a token for each file being processed: an upload, or a type change
	// perNetwork bounds the tokens of one network.
	perNetwork *ratelimit.Semaphore[netip.Prefix]
}

// textureStore is the store that Textures needs.
type textureStore interface {
	TextureStore
	RefusalStore
}

// NewTextures returns the textures of a store, and their files in another.
func NewTextures(store textureStore, files FileStore, limits TextureLimits, quotas Quotas, prices ScorePrices) *Textures {
	return &Textures{
		store: store, files: files, limits: limits.Limits, quotas: quotas, prices: prices,
		sem: make(chan struct{}, limits.Concurrency), perNetwork: ratelimit.NewSemaphore[netip.Prefix](max(1, limits.Concurrency-1)),
	}
}

// Upload is a texture as a client sends it.
type Upload struct {
	File   []byte // PNG
	Name   string
	Type   string // steve, alex, cape, or skin: the pixels tell which model
	Public bool
}

// Upload validates a file, stores its pixels and adds the texture. Pixels of a texture that the
// uploader may see are a Duplicate fault with the data tid.
func (t *Textures) Upload(ctx context.Context, uploader UserID, upload Upload) (Texture, error) {
	var added Texture
	err := t.parse(ctx, uploader, upload, func(texture NewTexture, file []byte) (err error) {
		added, err = t.store.AddTexture(ctx, texture, t.uploadPricing(texture), func(ctx context.Context) error {
			if err := t.files.Put(ctx, texture.Hash, file); err != nil {
				return fmt.Errorf("store texture file %s: %w", texture.Hash, err)
			}
			return nil
		})
		return err
	})
	return added, err
}

// UploadPrice is what an upload would add and cost.
type UploadPrice struct {
	Type      skin.Type
	Bytes     int       // size of the file that would be stored
	Public    int64     // cost as a public texture
	Private   int64     // cost as a private texture
	Duplicate TextureID // texture with the same pixels that the uploader may see; 0 for none
}

// KiB returns the size of the file in KiB, rounded up.
func (p UploadPrice) KiB() int { return kib(p.Bytes) }

// Price returns what an upload would add and cost, and stores nothing. It returns the same faults as
// Upload, except for a duplicate: its upload costs nothing.
func (t *Textures) Price(ctx context.Context, uploader UserID, upload Upload) (UploadPrice, error) {
	var price UploadPrice
	err := t.parse(ctx, uploader, upload, func(texture NewTexture, _ []byte) error {
		price = UploadPrice{Type: texture.Type, Bytes: texture.Bytes}
		err := t.store.CheckTexture(ctx, texture, t.uploadPricing(texture))
		if duplicate, ok := duplicateTexture(err); ok {
			price.Duplicate = duplicate
			return nil
		}
		price.Public, price.Private = t.prices.textureCost(texture.Bytes, true), t.prices.textureCost(texture.Bytes, false)
		return err
	})
	return price, err
}

// parse validates an upload, and calls do with the texture to add and its file. The number of calls
// at a time is bounded: a slow file store must not occupy all database connections.
func (t *Textures) parse(ctx context.Context, uploader UserID, upload Upload, do func(texture NewTexture, file []byte) error) error {
	var wrong fieldFaults
	title, err := validateName("name", upload.Name)
	wrong.add(err)

	release, err := t.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	parsed, err := skin.ParseUpload(upload.File, upload.Type, t.limits)
	wrong.add(err)
	if err := wrong.fault(); err != nil {
		return err
	}
	return do(NewTexture{
		Name: title, Type: parsed.Type, Hash: parsed.Hash, Pixels: parsed.Pixels, Bytes: len(parsed.File), Uploader: uploader, Public: upload.Public,
	}, parsed.File)
}

// acquire waits until a file may be processed, and returns a function that ends that.
func (t *Textures) acquire(ctx context.Context) (release func(), err error) {
	releaseNetwork, err := t.perNetwork.Acquire(ctx, ClientOf(ctx).Network)
	if err != nil {
		return nil, fmt.Errorf("wait for other uploads: %w", err)
	}
	select {
	case t.sem <- struct{}{}:
		return func() { <-t.sem; releaseNetwork() }, nil
	case <-ctx.Done():
		releaseNetwork()
		return nil, fmt.Errorf("wait for other uploads: %w", ctx.Err())
	}
}

// uploadPricing returns the pricing of an upload.
func (t *Textures) uploadPricing(texture NewTexture) Pricing {
	return Pricing{
		Quotas: t.quotas, Cost: t.prices.textureCost(texture.Bytes, texture.Public), Refund: t.prices.RefundTexture, Reward: t.prices.UploadReward,
	}
}

// visibleTo reports whether a user may see the texture and list it; the zero User is not signed in.
func (t Texture) visibleTo(user User) bool { return t.Public || t.canEdit(user) }

// canEdit reports whether a user may change and delete the texture.
func (t Texture) canEdit(user User) bool {
	return user.ID != 0 && (t.Uploader == user.ID || user.Permission >= Administrator)
}

// Find returns a texture that a user may see; the zero User is not signed in. An unknown texture is
// a NotFound fault, a private one of another user a Forbidden one.
func (t *Textures) Find(ctx context.Context, user User, tid TextureID) (LibraryTexture, error) {
	texture, err := t.store.LibraryTexture(ctx, user.ID, tid)
	switch {
	case err != nil:
		return LibraryTexture{}, err
	case !texture.visibleTo(user):
		return LibraryTexture{}, fault.New(fault.Forbidden, "Texture %d is private.", tid)
	default:
		return texture, nil
	}
}

// cascadeTimeout bounds a change with its cascade, which goes on when its request ends: a texture
// may be in a million closets, and on a million players.
const cascadeTimeout = 10 * time.Minute

// Delete deletes a texture, and all that refers to it. An unknown texture is a NotFound fault. An owner
// that did not upload it gets a Forbidden one, unless they are an administrator, and act as one then.
func (t *Textures) Delete(ctx context.Context, by Actor, tid TextureID) error {
	if by.Owner {
		if _, err := t.findFor(ctx, &by, tid); err != nil {
			return err
		}
	}
	return t.Remove(ctx, by, tid, false)
}

// Remove deletes a texture for an administrator, and with refuse, its pixels are refused from then on.
func (t *Textures) Remove(ctx context.Context, by Actor, tid TextureID, refuse bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.DeleteTexture(ctx, by, tid, refuse)
}

// findFor returns a texture that an actor is about to change. An owner that did not upload it becomes
// an administrator, or gets a Forbidden fault. That holds until the texture is deleted, since its
// uploader never changes.
func (t *Textures) findFor(ctx context.Context, by *Actor, tid TextureID) (Texture, error) {
	texture, err := t.store.Texture(ctx, tid)
	switch {
	case err != nil:
		return Texture{}, err
	case by.Owner && !texture.canEdit(User{ID: by.ID, Permission: by.Permission}):
		return Texture{}, fault.New(fault.Forbidden, "Texture %d is somebody else's.", tid)
	}
	by.Owner = by.Owner && texture.Uploader == by.ID
	return texture, nil
}

// Change changes a texture, and all that refers to it, with the checks of Delete. A skin with a square
// sheet may have either model, otherwise the slim one is an Invalid fault.
func (t *Textures) Change(ctx context.Context, by Actor, tid TextureID, change TextureChange) (Texture, error) {
	if err := change.check(); err != nil {
		return Texture{}, err
	}
	if by.Owner || change.Type != nil {
		texture, err := t.findFor(ctx, &by, tid)
		if err == nil && change.Type != nil {
			err = t.checkTypeChange(ctx, texture, *change.Type)
		}
		if err != nil {
			return Texture{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.ChangeTexture(ctx, by, tid, change, t.prices)
}

// check returns an Invalid fault for an empty or invalid change, and trims the name.
func (c *TextureChange) check() error {
	if *c == (TextureChange{}) {
		return &fault.Error{Kind: fault.Invalid, Message: "Give a name, a type, or whether it is public.", Fields: map[string][]string{
			"name": {"Give a name, a type, or whether it is public."},
		}}
	}
	if c.Name == nil {
		return nil
	}
	title, err := validateName("name", *c.Name)
	c.Name = &title
	return err
}

// checkTypeChange returns an Invalid fault unless a texture may have a type. A skin may have either
// model, but slim arms need a square sheet, which every slim skin has.
func (t *Textures) checkTypeChange(ctx context.Context, texture Texture, wanted skin.Type) error {
	switch {
	case wanted == texture.Type || wanted == skin.Classic && texture.Type == skin.Slim:
		return nil
	case !wanted.IsSkin() || !texture.Type.IsSkin():
		return fault.Field("type", "A %s cannot become a %s.", texture.Type, wanted)
	}
	// The row does not hold the size of the sheet, and few requests need it.
	release, err := t.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	file, err := t.files.Get(ctx, texture.Hash)
	if err != nil {
		return fmt.Errorf("read texture file %s: %w", texture.Hash, err)
	}
	sheet, err := skin.Decode(file)
	if err != nil {
		return fmt.Errorf("texture %d: %w", texture.ID, err)
	}
	if sheet.Width != sheet.Height {
		return fault.Field("type", "A skin with slim arms has as many rows as columns of pixels; this one has %d × %d.", sheet.Width, sheet.Height)
	}
	return nil
}

// ErrDuplicateTexture returns the Duplicate fault of an upload with the pixels of an existing
// texture.
func ErrDuplicateTexture(tid TextureID) error {
	return &fault.Error{
		Kind: fault.Duplicate, Message: "This texture exists already.",
		Fields: map[string][]string{"file": {"This texture exists already."}},
		Data:   map[string]TextureID{"tid": tid},
	}
}

// duplicateTexture returns the existing texture of ErrDuplicateTexture.
func duplicateTexture(err error) (tid TextureID, ok bool) {
	if err == nil || fault.KindOf(err) != fault.Duplicate {
		return 0, false
	}
	data, _ := fault.Of(err).Data.(map[string]TextureID)
	tid, ok = data["tid"]
	return tid, ok
}

// ErrDuplicateChange returns the Duplicate fault, with a field, of a change that would make a
// texture the same as another.
func ErrDuplicateChange(field string, tid TextureID) error {
	const sentence = "Another texture has the same pixels and the same type."
	return &fault.Error{
		Kind: fault.Duplicate, Message: sentence, Fields: map[string][]string{field: {sentence}}, Data: map[string]TextureID{"tid": tid},
	}
}
