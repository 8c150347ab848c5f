// Package town is a made-up site: residents, each a user with a player who wears a skin
// and a cape, behind an edge with its defaults and a stand-in for core that answers in no
// time and never changes. What is measured there is the edge.
package town

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// urlPatterns is what is asked for: each group's paths, each with all of its endings, each
// for everybody in town. What stands in braces is the resident's.
var urlPatterns = []struct{ paths, endings []string }{
	{
		paths: []string{"/avatar/player/{name}", "/avatar/uuid/{uuid}", "/avatar/user/{uid}", "/avatar/{tid}", "/avatar/hash/{hash}"},
		endings: []string{
			"", "?size=64", "?size=128", "?png", "?size=64&png=1", "?png&size=64", "?3d", "?3d&size=128", "?size=128&3d=1", "?png&3d&size=64",
			".webp", ".webp?size=64", ".png", ".png?size=64", ".png?size=64&3d",
		},
	},
	{
		paths:   []string{"/preview/{tid}", "/preview/hash/{hash}"},
		endings: []string{"", ".webp", "?png&height=192", ".png?height=192"},
	},
	{
		paths:   []string{"/textures/{hash}", "/csl/textures/{hash}", "/skin/{name}.png", "/cape/{name}.png", "/csl/{name}.json"},
		endings: []string{""},
	},
}

// viewPatterns are pictures, all different, each by one address that caches may keep for a day or
// longer: heads from the front and in space, in sizes as sites show them.
var viewPatterns = []string{
	"/avatar/hash/{hash}?size=32", "/avatar/hash/{hash}?size=64", "/avatar/hash/{hash}?size=128", "/avatar/hash/{hash}.png?size=32", "/avatar/hash/{hash}.png?size=64",
	"/avatar/{tid}?size=32&3d", "/avatar/{tid}?size=64&3d", "/avatar/{tid}?size=96&3d", "/avatar/{tid}.png?size=32&3d", "/preview/{tid}?height=64",
}

// testPlayer is a player with a skin, and the user behind.
type testPlayer struct {
	name, uuid string
	skin       mapping.Texture
}

// id is the number of a resident's player, user and texture.
func (r *testPlayer) id() int64 { return r.skin.TID }

// replacer fills in what stands in braces.
func (r *testPlayer) replacer() *strings.Replacer {
	id := strconv.FormatInt(r.id(), 10)
	return strings.NewReplacer("{name}", r.name, "{uuid}", r.uuid, "{uid}", id, "{tid}", id, "{hash}", r.skin.Hash.String())
}

// Site is a town with its edge.
type Site struct {
	Edge      *rivals.Server
	Operators string // address of its listener for operators

	env     rivals.Env
	program   string // path of the edge's
	players []testPlayer
	core      fakeCore
	coreURL       string // of core
	closers   []func()
}

// Open has so many residents move in, with their textures in the place's directory, and
// starts the edge of a program, with its defaults but for settings as in StartEdge.
func Open(ctx context.Context, env rivals.Env, program string, players int, settings ...string) (t *Site, err error) {
	t = &Site{env: env, program: program}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.players, t.core.mappings, err = seed(ctx, Textures(env), players); err != nil {
		return nil, err
	}
	url, server, err := t.core.serve()
	if err != nil {
		return nil, err
	}
	t.coreURL = url
	t.closers = append(t.closers, func() { _ = server.Close() })
	t.Edge, t.Operators, err = t.StartEdge(ctx, settings...)
	return t, err
}

// Textures returns the directory in which a town keeps its textures.
func Textures(env rivals.Env) string { return filepath.Join(env.WorkDir, "textures") }

// Close stops what Open has started.
func (t *Site) Close() {
	for _, closer := range slices.Backward(t.closers) {
		closer()
	}
}

// Lookups returns for how many keys the edge has asked core.
func (t *Site) Lookups() int64 { return t.core.lookups.Load() }

// Skins returns the hashes of the residents' skins, all of them different.
func (t *Site) Skins() []skin.Hash {
	hashes := make([]skin.Hash, len(t.players))
	for i := range t.players {
		hashes[i] = t.players[i].skin.Hash
	}
	return hashes
}

// Addresses returns so many different addresses, each of a resident, of whom there are
// as few as possible, and no more than PlayersFor.
func (t *Site) Addresses(count int) []string { return addresses(count, t.players) }

// Views returns the addresses of so many pictures, no two of them the same, of as few
// residents as possible, whose number comes with them.
func (t *Site) Views(count int) (addresses []string, players int) {
	for addresses = make([]string, 0, count); len(addresses) < count; players++ {
		replacer := t.players[players].replacer()
		for _, view := range viewPatterns[:min(len(viewPatterns), count-len(addresses))] {
			addresses = append(addresses, replacer.Replace(view))
		}
	}
	return addresses, players
}

// TextureFiles returns the addresses of the files of the first residents' skins.
func (t *Site) TextureFiles(players int) []string {
	files := make([]string, players)
	for i := range files {
		files[i] = t.players[i].replacer().Replace("/textures/{hash}")
	}
	return files
}

// AvatarByName returns the address of a resident's head by the name, which caches may keep for a
// minute.
func (t *Site) AvatarByName() string { return t.players[0].replacer().Replace("/avatar/player/{name}?size=64") }

// PlayersFor returns how many residents it takes to have so many addresses.
func PlayersFor(addresses int) int { return (addresses + Patterns() - 1) / Patterns() }

func addresses(count int, players []testPlayer) []string {
	all := make([]string, 0, count+Patterns())
	for i := range players {
		replacer := players[i].replacer()
		for _, group := range urlPatterns {
			for _, path := range group.paths {
				for _, ending := range group.endings {
					all = append(all, replacer.Replace(path+ending))
				}
			}
		}
	}
	return all[:count]
}

// Patterns returns how many addresses each resident has.
func Patterns() (n int) {
	for _, group := range urlPatterns {
		n += len(group.paths) * len(group.endings)
	}
	return n
}

// seed has so many residents move in: it puts their textures into a directory
// and returns them with all that leads to them.
func seed(ctx context.Context, directory string, count int) ([]testPlayer, map[mapping.Key]mapping.Mapping, error) {
	store, err := objects.New(objects.Config{URL: "file://" + directory, Timeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	if err := store.Init(ctx); err != nil {
		return nil, nil, err
	}
	skins, capes := normalScale(paint.Corpus()), normalScale(paint.CorpusCapes())
	players, mappings := make([]testPlayer, count), map[mapping.Key]mapping.Mapping{}
	put := func(from []paint.NamedSheet, into []mapping.Texture) error {
		var all errgroup.Group
		all.SetLimit(8 * runtime.GOMAXPROCS(0)) // most of them wait for the disk
		for i := range into {
			all.Go(func() error {
				file, err := fileOf(from[i%len(from)], i/len(from))
				if err != nil {
					return err
				}
				into[i] = mapping.Texture{Hash: skin.HashOf(file), Type: from[i%len(from)].Type}
				return store.Put(ctx, into[i].Hash, file)
			})
		}
		return all.Wait()
	}
	// Few have a cape of their own.
	skinTextures, capeTextures := make([]mapping.Texture, count), make([]mapping.Texture, min(count, 40))
	if err := errors.Join(put(skins, skinTextures), put(capes, capeTextures)); err != nil {
		return nil, nil, err
	}
	for i := range players {
		r, id := &players[i], int64(i+1)
		r.name, r.uuid = fmt.Sprintf("Player_%d", id), fmt.Sprintf("00000000-0000-4000-8000-%012x", id)
		r.skin = skinTextures[i]
		r.skin.TID = id
		cape := capeTextures[i%len(capeTextures)]
		cape.TID = int64(count + 1 + i%len(capeTextures))

		player := mapping.Mapping{Player: &mapping.Player{PID: id, UUID: r.uuid, Name: r.name, Skin: &r.skin, Cape: &cape}}
		texture := mapping.Mapping{Texture: &r.skin}
		mappings[mapping.NameKey(r.name)], mappings[mapping.UUIDKey(r.uuid)] = player, player
		mappings[mapping.UIDKey(id)] = mapping.Mapping{User: &mapping.User{UID: id, Avatar: id, Texture: &r.skin}}
		mappings[mapping.TIDKey(id)], mappings[mapping.HashKey(r.skin.Hash)] = texture, texture
		mappings[mapping.TIDKey(cape.TID)], mappings[mapping.HashKey(cape.Hash)] = mapping.Mapping{Texture: &cape}, mapping.Mapping{Texture: &cape}
	}
	return players, mappings, nil
}

// normalScale leaves out fine sheets, which few players have.
func normalScale(all []paint.NamedSheet) (usual []paint.NamedSheet) {
	for _, texture := range all {
		if texture.Sheet.Scale() == 1 {
			usual = append(usual, texture)
		}
	}
	return usual
}

// fileOf returns a texture as core would store it, in one of many tints: so files
// differ that are as large as those of real textures.
func fileOf(texture paint.NamedSheet, tint int) ([]byte, error) {
	sheet := texture.Sheet
	pixels := bytes.Clone(sheet.Pix)
	for i := 0; i < len(pixels); i += 4 {
		pixels[i] += byte(5 * tint)
		pixels[i+1] += byte(tint)
		pixels[i+2] += byte(tint >> 8)
	}
	sheet.Pix = pixels
	file, err := sheet.PNG()
	if err != nil {
		return nil, err
	}
	stored, err := skin.ParseUpload(file, texture.Type.String(), skin.DefaultLimits())
	return stored.File, err
}
