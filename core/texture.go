package core

import (
	"context"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
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
	AddTexture(ctx context.Context, texture NewTexture, terms Terms, put func(context.Context) error) (Texture, error)
}

// FileStore keeps texture files by hash.
type FileStore interface {
	// Put stores a file; it is durable when Put returns.
	Put(ctx context.Context, hash skin.Hash, file []byte) error
}

// TextureLimits bounds what is uploaded.
type TextureLimits struct {
	skin.Limits
	AtOnce int `env:"AT_ONCE" envDefault:"4" help:"most uploads that are worked on at once, at least 1: each takes memory, and a database connection while its file is stored"`
}

// Check returns an error that names a limit which makes no sense.
func (l TextureLimits) Check() error {
	if l.AtOnce < 1 {
		return fmt.Errorf("AT_ONCE is %d, but must be at least 1", l.AtOnce)
	}
	return l.Limits.Check()
}

// Textures are the skins and capes that people share.
type Textures struct {
	store  TextureStore
	files  FileStore
	limits skin.Limits
	quotas Quotas
	scores Scores
	slots  chan struct{} // a token is an upload being worked on
}

// NewTextures returns the textures kept in a store, their files in another.
func NewTextures(store TextureStore, files FileStore, limits TextureLimits, quotas Quotas, scores Scores) *Textures {
	return &Textures{
		store: store, files: files, limits: limits.Limits, quotas: quotas, scores: scores,
		slots: make(chan struct{}, limits.AtOnce),
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
	title, err := name("name", upload.Name)
	wrong.add(err)

	// A slow texture store must not take the database connections that everything
	// else needs.
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return Texture{}, fmt.Errorf("wait for other uploads: %w", ctx.Err())
	}
	read, err := skin.Read(upload.File, upload.Type, t.limits)
	wrong.add(err)
	if err := wrong.fault(); err != nil {
		return Texture{}, err
	}

	return t.store.AddTexture(ctx, NewTexture{
		Name: title, Type: read.Type, Hash: read.Hash, Pixels: read.Pixels, Bytes: len(read.File), Uploader: uploader, Public: upload.Public,
	}, t.terms(len(read.File), upload.Public), func(ctx context.Context) error {
		if err := t.files.Put(ctx, read.Hash, read.File); err != nil {
			return fmt.Errorf("store texture file %s: %w", read.Hash, err)
		}
		return nil
	})
}

// terms returns the terms of an upload.
func (t *Textures) terms(bytes int, public bool) Terms {
	return Terms{
		Quotas: t.quotas, Cost: t.scores.TextureRate(public) * int64(kib(bytes)), Refund: t.scores.RefundTexture, Reward: t.scores.UploadReward,
	}
}

// Exists returns the Duplicate fault of an upload whose pixels are known
// already.
func Exists(tid TextureID) error {
	return &fault.Error{
		Kind: fault.Duplicate, Message: "This texture exists already.",
		Fields: map[string][]string{"file": {"This texture exists already."}},
		Data:   map[string]TextureID{"tid": tid},
	}
}
