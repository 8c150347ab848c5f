//go:build !race

package edge

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// heap returns how many bytes of the heap are in use after a garbage collection.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what finalisers and pools held
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestMappingsAllocateWhatTheyCost compares the estimated size of mappings with the growth of
// the heap, after many have been added and evicted. No test runs in parallel.
func TestMappingsAllocateWhatTheyCost(t *testing.T) {
	testenv.SkipShort(t)
	sheet := func(i int) *edgeproto.Texture { return &edgeproto.Texture{TID: int64(i), Hash: skin.Hash{byte(i)}} }
	for name, test := range map[string]struct {
		key     func(i int) edgeproto.Key
		mapping func(i int) edgeproto.Mapping
	}{
		"players": {
			func(i int) edgeproto.Key { return edgeproto.NameKey(fmt.Sprintf("player_%d", i)) },
			func(i int) edgeproto.Mapping {
				player := &edgeproto.Player{Name: fmt.Sprintf("Player_%d", i), UUID: strings.Repeat("x", 36), Skin: sheet(i), Cape: sheet(i)}
				return edgeproto.Mapping{Player: player}
			},
		},
		"users": {
			func(i int) edgeproto.Key { return edgeproto.UIDKey(int64(i)) },
			func(i int) edgeproto.Mapping {
				return edgeproto.Mapping{User: &edgeproto.User{UID: int64(i), Avatar: 1, Texture: sheet(i)}}
			},
		},
		"files": {
			func(i int) edgeproto.Key { return edgeproto.HashKey(skin.Hash{byte(i), byte(i >> 8), byte(i >> 16)}) },
			func(i int) edgeproto.Mapping { return edgeproto.Mapping{Texture: sheet(i)} },
		},
		"nothing": {
			func(i int) edgeproto.Key { return edgeproto.NameKey(fmt.Sprintf("no_such_player_%d", i)) },
			func(int) edgeproto.Mapping { return edgeproto.Mapping{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewResolver(ResolverConfig{Bytes: 8 << 20, NegativeBytes: 8 << 20, MaxStale: time.Hour}, nil)
			before := heap()
			for i := range 300_000 {
				key := test.key(i)
				m.shard(key).put(key, cachedMapping{mapping: test.mapping(i)})
			}
			grown := heap() - before
			used := m.usage(positivePart)
			if used.count == 0 {
				used = m.usage(negativePart)
			}
			checkHeapCost(t, name, used.count, grown, used.bytes)
			runtime.KeepAlive(m)
		})
	}
}
