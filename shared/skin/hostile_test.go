//go:build !race

package skin_test

import (
	"bytes"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// maxAllocated bounds the total of all allocations while a file is parsed, which is more than
// the memory in use at any moment.
const maxAllocated = 64 << 20

// Harmful files of all kinds are rejected, or only their pixels are stored: the same pixels
// as the same file, whatever came with them. Both take little memory. The test counts the
// allocations of the process, so no other test may run in parallel.
func TestParseUploadOfHostileFiles(t *testing.T) {
	testenv.SkipShort(t)
	var largest, slowest string
	var most uint64
	var longest time.Duration
	corpus := skintest.Corpus()
	stored := map[[32]byte]skin.Hash{} // by digest of the pixels
	for _, file := range corpus {
		t.Run(file.Name, func(t *testing.T) {
			before, began := allocated(), cpuTime(t)
			texture, err := skin.ParseUpload(file.Data, file.Type, skin.DefaultLimits())
			took, used := cpuTime(t)-began, allocated()-before
			if took > longest {
				longest, slowest = took, file.Name
			}
			if used > most {
				most, largest = used, file.Name
			}
			testenv.Check(t, used <= maxAllocated, "%d bytes were allocated; want %d at most", used, maxAllocated)
			if file.WantError != "" {
				checkRefusal(t, file.Type, err, file.WantError)
				return
			}
			testenv.Do(t, err)
			testenv.Check(t, same(texture.Sheet, file.Sheet), "the pixels are not the ones uploaded")
			testenv.Check(t, file.Payload == "" || !bytes.Contains(texture.File, []byte(file.Payload)),
				"the stored file holds %q", file.Payload)
			previous, ok := stored[texture.Pixels]
			testenv.Check(t, !ok || previous == texture.Hash, "the same pixels were stored as another file before")
			stored[texture.Pixels] = texture.Hash
			checkTexture(t, texture)
		})
	}
	t.Logf("%d files; the most allocations, %.1f MiB, are of %s; the longest time, %v, is of %s",
		len(corpus), float64(most)/(1<<20), largest, longest.Round(time.Millisecond), slowest)
}

// allocated returns the total of all allocations of the process, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// cpuTime returns the processor time of the process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	testenv.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A truncated file is rejected, wherever it ends before its last IDAT chunk does.
func TestParseUploadTruncated(t *testing.T) {
	t.Parallel()
	whole := skintest.FromSheet(artwork.Explorer()).File()
	for n := range len(whole) - len(skintest.Chunk("IEND", nil)) {
		_, err := skin.ParseUpload(whole[:n], "steve", skin.DefaultLimits())
		checkRefusal(t, "a file cut off", err, "it ")
	}
}

// Any file is rejected, or only its pixels are stored, and these are parsed as the same
// texture again.
func FuzzParseUpload(f *testing.F) {
	// A few of each: other tests parse all of them, and here they come before the first new
	// input.
	for _, painting := range append(artwork.Skins()[:2], artwork.Capes()[:1]...) {
		f.Add(skintest.FromSheet(painting.Sheet).File(), painting.Type.String(), true)
	}
	for _, file := range skintest.Corpus() {
		if len(file.Data) < 256 { // large ones are slow to mutate
			f.Add(file.Data, file.Type, !strings.Contains(file.WantError, "checksum"))
		}
	}

	f.Fuzz(func(t *testing.T, file []byte, as string, mended bool) {
		if mended {
			file = bytes.Clone(file)
			skintest.FixChecksums(file)
		}
		before := allocated()
		texture, err := skin.ParseUpload(file, as, skin.DefaultLimits())
		used := allocated() - before
		testenv.Check(t, used <= maxAllocated, "%d bytes were allocated", used)
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.TooLarge {
				t.Fatalf("kind %d: %v", kind, err)
			}
			return
		}
		checkTexture(t, texture)
	})
}
