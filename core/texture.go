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

// Texture is a skin or a cape that somebody uploaded.
type Texture struct {
	ID       TextureID
	Name     string
	Type     skin.Type
	Hash     skin.Hash
	Bytes    int    // size of the stored file
	Uploader UserID // 0 when the uploader is deleted
	Public   bool
	UploadAt time.Time
	Likes    int64 // closets that hold it
}

// KiB returns the size of the stored file in KiB, rounded up.
func (t Texture) KiB() int { return kib(t.Bytes) }

func kib(bytes int) int { return (bytes + 1023) / 1024 }

// NewTexture is what a texture is made of.
type NewTexture struct {
	Name     string
	Type     skin.Type
	Hash     skin.Hash
	Pixels   [32]byte
	Bytes    int
	Uploader UserID
	Public   bool
}

// TextureStore keeps the record of which textures exist.
type TextureStore interface {
	// AddTexture records a texture and puts it into its uploader's closet under its
	// name. It holds the lock on the texture's hash, which the sweep takes too,
	// while it calls put to store the file and until the record is written; when put
	// fails nothing is recorded.
	//
	// It returns a Duplicate fault, whose data holds the tid, when the uploader may
	// see a texture of the same pixels and type already, a Refused one when a quota
	// leaves no room for the texture or the closet item, and a ScoreTooLow one when
	// the uploader cannot pay; put may not have been called then.
	AddTexture(ctx context.Context, texture NewTexture, pricing Pricing, put func(context.Context) error) (Texture, error)

	// Texture returns a texture, or a NotFound fault.
	Texture(ctx context.Context, texture TextureID) (Texture, error)

	// ChangeTexture changes a texture. It returns a NotFound fault when there is none,
	// and a Duplicate one, whose data holds the tid, when another texture of the same
	// pixels has that type. One that becomes private leaves all closets but its
	// uploader's, everybody else's players take it off, and users whose avatar it is
	// have none. Its uploader is charged for
	// what it costs more as a public, or a private one: a ScoreTooLow fault if they
	// cannot pay.
	ChangeTexture(ctx context.Context, texture TextureID, change TextureChange, scores Scores) (Texture, error)

	// DeleteTexture deletes a texture, or returns a NotFound fault: it leaves all
	// closets, and all players take it off. It stays the avatar of users, which is not
	// found from then on. Its file stays for the sweep.
	DeleteTexture(ctx context.Context, texture TextureID) error
}

// TextureChange is what becomes different of a texture; what is nil stays as it
// is.
type TextureChange struct {
	Name   *string
	Type   *skin.Type
	Public *bool
}

// Hides reports whether the change makes a public texture private.
func (c *TextureChange) Hides() bool { return c.Public != nil && !*c.Public }

// FileStore keeps texture files by hash.
type FileStore interface {
	// Put stores a file; it is durable when Put returns.
	Put(ctx context.Context, hash skin.Hash, file []byte) error
	// Get returns a file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

// TextureLimits bounds what is uploaded.
type TextureLimits struct {
	skin.Limits
	Concurrency int `env:"CONCURRENCY" envDefault:"4" help:"most uploads that are worked on at once, at least 1: each takes memory, and a database connection while its file is stored"`
}

// Check returns an error that names a limit which makes no sense.
func (l TextureLimits) Check() error {
	if l.Concurrency < 1 {
		return fmt.Errorf("CONCURRENCY is %d, but must be at least 1", l.Concurrency)
	}
	return l.Limits.Check()
}

// textureStore is all that is needed of a store of textures.
type textureStore interface {
	TextureStore
	TextureAdminStore
}

// Textures are the skins and capes that people share.
type Textures struct {
	store  textureStore
	files  FileStore
	limits skin.Limits
	quotas Quotas
	scores Scores
	sem    chan struct{} // a token is a file being worked on: an upload, or one whose shape is looked at
	// perNetwork bounds how many of them one network has.
	perNetwork *ratelimit.Semaphore[netip.Prefix]
}

// NewTextures returns the textures kept in a store, their files in another.
func NewTextures(store textureStore, files FileStore, limits TextureLimits, quotas Quotas, scores Scores) *Textures {
	return &Textures{
		store: store, files: files, limits: limits.Limits, quotas: quotas, scores: scores,
		sem: make(chan struct{}, limits.Concurrency), perNetwork: ratelimit.NewSemaphore[netip.Prefix](max(1, limits.Concurrency-1)),
	}
}

// Upload is a texture as somebody sends it.
type Upload struct {
	File   []byte // PNG
	Name   string
	Type   string // steve, alex, cape, or skin: told by the pixels
	Public bool
}

// Upload checks a file, stores its pixels and records the texture. It returns a
// Duplicate fault whose data names the texture that the uploader may see
// already.
func (t *Textures) Upload(ctx context.Context, uploader UserID, upload Upload) (Texture, error) {
	var wrong fieldFaults
	title, err := validateName("name", upload.Name)
	wrong.add(err)

	// A slow texture store must not take the database connections that everything
	// else needs.
	release, err := t.acquire(ctx)
	if err != nil {
		return Texture{}, err
	}
	defer release()
	parsed, err := skin.ParseUpload(upload.File, upload.Type, t.limits)
	wrong.add(err)
	if err := wrong.fault(); err != nil {
		return Texture{}, err
	}

	return t.store.AddTexture(ctx, NewTexture{
		Name: title, Type: parsed.Type, Hash: parsed.Hash, Pixels: parsed.Pixels, Bytes: len(parsed.File), Uploader: uploader, Public: upload.Public,
	}, t.uploadPricing(len(parsed.File), upload.Public), func(ctx context.Context) error {
		if err := t.files.Put(ctx, parsed.Hash, parsed.File); err != nil {
			return fmt.Errorf("store texture file %s: %w", parsed.Hash, err)
		}
		return nil
	})
}

// acquire waits for a slot for work on a file, and returns the function that gives it back.
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

// uploadPricing returns the terms of an upload.
func (t *Textures) uploadPricing(bytes int, public bool) Pricing {
	return Pricing{
		Quotas: t.quotas, Cost: t.scores.TextureRate(public) * int64(kib(bytes)), Refund: t.scores.RefundTexture, Reward: t.scores.UploadReward,
	}
}

// visibleTo reports whether a user, whose zero value is somebody not signed in, may
// look at the texture and have it listed.
func (t Texture) visibleTo(user User) bool { return t.Public || t.canEdit(user) }

// canEdit reports whether a user may do with the texture as they like.
func (t Texture) canEdit(user User) bool {
	return user.ID != 0 && (t.Uploader == user.ID || user.Permission >= Administrator)
}

// Find returns a texture that a user, whose zero value is somebody not signed in,
// may see. It returns a NotFound fault when there is none, and a Forbidden one when
// it is private and somebody else's.
func (t *Textures) Find(ctx context.Context, user User, tid TextureID) (Texture, error) {
	texture, err := t.store.Texture(ctx, tid)
	switch {
	case err != nil:
		return Texture{}, err
	case !texture.visibleTo(user):
		return Texture{}, fault.New(fault.Forbidden, "Texture %d is private.", tid)
	default:
		return texture, nil
	}
}

// cascadeTimeout is how long a change may take that a request has begun: a texture
// may lie in a million closets, and be worn by a million players.
const cascadeTimeout = 10 * time.Minute

// Delete deletes a texture, with all that follows, for its uploader or, as DeleteBy
// does, an administrator at an address. It returns a NotFound fault when there is
// none, and a Forbidden one to everybody else.
func (t *Textures) Delete(ctx context.Context, caller Caller, from netip.Addr, tid TextureID) error {
	switch texture, err := t.ownedTexture(ctx, caller, tid); {
	case err != nil:
		return err
	case texture.Uploader != caller.ID:
		return t.DeleteBy(ctx, Actor{ID: caller.ID, Permission: caller.Permission, From: from}, tid)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.DeleteTexture(ctx, tid)
}

// ownedTexture returns a texture that is the caller's to change. It is that until it is
// gone: it never gets another uploader.
func (t *Textures) ownedTexture(ctx context.Context, caller Caller, tid TextureID) (Texture, error) {
	texture, err := t.store.Texture(ctx, tid)
	switch {
	case err != nil:
		return Texture{}, err
	case !texture.canEdit(caller.User):
		return Texture{}, fault.New(fault.Forbidden, "Texture %d is somebody else's.", tid)
	default:
		return texture, nil
	}
}

// Change changes a texture, with all that follows, for its uploader or, as ChangeBy
// does, an administrator at an address; to others it returns a Forbidden fault. A
// skin may be of either type if its sheet is square, else the other type is an
// Invalid fault.
func (t *Textures) Change(ctx context.Context, caller Caller, from netip.Addr, tid TextureID, change TextureChange) (Texture, error) {
	if err := change.check(); err != nil {
		return Texture{}, err
	}
	texture, err := t.ownedTexture(ctx, caller, tid)
	switch {
	case err != nil:
		return Texture{}, err
	case texture.Uploader != caller.ID:
		return t.ChangeBy(ctx, Actor{ID: caller.ID, Permission: caller.Permission, From: from}, tid, change)
	}
	if change.Type != nil {
		if err := t.checkTypeChange(ctx, texture, *change.Type); err != nil {
			return Texture{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return t.store.ChangeTexture(ctx, tid, change, t.scores)
}

// check returns an Invalid fault for what no texture can become, and trims the
// name.
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

// checkTypeChange returns an Invalid fault unless a texture may be of a type: a skin of
// either model, but slim arms want a square sheet. What is slim has one.
func (t *Textures) checkTypeChange(ctx context.Context, texture Texture, wanted skin.Type) error {
	switch {
	case wanted == texture.Type || wanted == skin.Classic && texture.Type == skin.Slim:
		return nil
	case !wanted.IsSkin() || !texture.Type.IsSkin():
		return fault.Field("type", "A %s cannot become a %s.", texture.Type, wanted)
	}
	// The row does not say of what shape the sheet is. The file does, and few ask.
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

// ErrDuplicateTexture returns the Duplicate fault of an upload whose pixels are known
// already.
func ErrDuplicateTexture(tid TextureID) error {
	return &fault.Error{
		Kind: fault.Duplicate, Message: "This texture exists already.",
		Fields: map[string][]string{"file": {"This texture exists already."}},
		Data:   map[string]TextureID{"tid": tid},
	}
}

// ErrDuplicateChange returns the Duplicate fault of a change, by a field, after which a
// texture would be the same as another one.
func ErrDuplicateChange(field string, tid TextureID) error {
	const sentence = "Another texture has the same pixels and the same type."
	return &fault.Error{
		Kind: fault.Duplicate, Message: sentence, Fields: map[string][]string{field: {sentence}}, Data: map[string]TextureID{"tid": tid},
	}
}
