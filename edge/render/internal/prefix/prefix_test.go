package prefix_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestWriterPacksFromTheLowestBit(t *testing.T) {
	t.Parallel()
	var w prefix.Writer
	w.Reset([]byte{0xaa})
	w.Write(0b1, 1)
	w.Write(0b01, 2)
	w.Write(0, 0)
	w.Write(0xfedcba98765432, 56)
	w.Write(0b11, 2)
	want := []byte{0xaa, 0b10010_011, 0b10100001, 0b10110010, 0b11000011, 0b11010100, 0b11100101, 0b11110110, 0b11111}
	cmptest.Same(t, w.Bytes(), want, "bytes")
	w.Write(1, 1)
	cmptest.Same(t, w.Bytes(), append(want, 1), "bytes after more")
}

func TestLengths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		counts []uint32
		limit  int
		want   []uint8
	}{
		{"nothing", []uint32{0, 0}, 15, []uint8{0, 0}},
		{"one symbol", []uint32{0, 7, 0}, 15, []uint8{0, 1, 0}},
		{"two symbols", []uint32{1, 0, 9}, 15, []uint8{1, 0, 1}},
		{"even", []uint32{3, 3, 3, 3}, 15, []uint8{2, 2, 2, 2}},
		{"steep", []uint32{16, 8, 4, 2, 1, 1}, 15, []uint8{1, 2, 3, 4, 5, 5}},
		{"steep, limited", []uint32{16, 8, 4, 2, 1, 1}, 3, []uint8{2, 2, 3, 3, 3, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := slices.Repeat([]uint8{77}, len(test.counts))
			new(prefix.Builder).Lengths(got, test.counts, test.limit)
			cmptest.Same(t, got, test.want, "lengths")
		})
	}
}

// Every code is complete, within its limit, and optimal, which is checked by exhaustion for
// small alphabets.
func TestLengthsAreOptimal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var b prefix.Builder
	for range 3000 {
		n := 3 + random.IntN(5)
		counts := make([]uint32, n)
		for i := range counts {
			counts[i] = uint32(math.Exp(random.Float64()*9)) + 1
		}
		limit := 3 + random.IntN(4)
		lengths := make([]uint8, n)
		b.Lengths(lengths, counts, limit)
		if got, want := cost(counts, lengths), cheapest(counts, limit); got != want {
			t.Fatalf("%v limited to %d: %v costs %d; want %d", counts, limit, lengths, got, want)
		}
		checkComplete(t, lengths, limit)
	}

	// Fibonacci's numbers make the longest words.
	counts := []uint32{1, 1}
	for len(counts) < 40 {
		counts = append(counts, counts[len(counts)-1]+counts[len(counts)-2])
	}
	for _, limit := range []int{6, 7, 15} {
		lengths := make([]uint8, len(counts))
		b.Lengths(lengths, counts, limit)
		checkComplete(t, lengths, limit)
	}
}

func checkComplete(t *testing.T, lengths []uint8, limit int) {
	t.Helper()
	room := 0
	for _, length := range lengths {
		if int(length) > limit || length == 0 {
			t.Fatalf("a length of %d where 1 to %d are allowed", length, limit)
		}
		room += 1 << (limit - int(length))
	}
	if room != 1<<limit {
		t.Fatalf("%v fills %d of %d", lengths, room, 1<<limit)
	}
}

func cost(counts []uint32, lengths []uint8) (total int) {
	for i, count := range counts {
		total += int(count) * int(lengths[i])
	}
	return total
}

// cheapest tries all codes: lengths ascend as counts descend.
func cheapest(counts []uint32, limit int) int {
	sorted := slices.Sorted(slices.Values(counts))
	slices.Reverse(sorted)
	best := math.MaxInt
	var try func(i, least, room, spent int)
	try = func(i, least, room, spent int) {
		if i == len(sorted) {
			best = min(best, spent)
			return
		}
		for length := least; length <= limit; length++ {
			if takes := 1 << (limit - length); takes <= room {
				try(i+1, length, room-takes, spent+length*int(sorted[i]))
			}
		}
	}
	try(0, 1, 1<<limit, 0)
	return best
}

// Shorten gives what Lengths gives with the lower limit.
func TestShorten(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	var b, afresh prefix.Builder
	for range 500 {
		counts := make([]uint32, 3+random.IntN(60))
		for i := range counts {
			counts[i] = uint32(math.Exp(random.Float64() * 9))
		}
		lengths, want := make([]uint8, len(counts)), make([]uint8, len(counts))
		b.Lengths(lengths, counts, prefix.MaxLength)
		for limit := int(slices.Max(lengths)) - 1; limit >= 6; limit-- {
			b.Shorten(lengths, limit)
			afresh.Lengths(want, counts, limit)
			if diff := cmp.Diff(want, lengths); diff != "" {
				t.Fatalf("%v shortened to %d bits (-want +got):\n%s", counts, limit, diff)
			}
		}
	}
}

func TestCodesAreCanonical(t *testing.T) {
	t.Parallel()
	// The example of RFC 1951, section 3.2.2: A to H, first bit highest there.
	lengths := []uint8{3, 3, 3, 3, 3, 2, 4, 4, 0}
	codes := make([]uint16, len(lengths))
	prefix.Codes(codes, lengths)
	want := []uint16{0b010, 0b110, 0b001, 0b101, 0b011, 0b00, 0b0111, 0b1111, 0}
	cmptest.Same(t, codes, want, "codes")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var lengths []uint8
		for len(lengths) < 300 {
			length := uint8(random.IntN(3) * random.IntN(6))
			lengths = append(lengths, slices.Repeat([]uint8{length}, 1+random.IntN(1+random.IntN(200)))...)
		}
		var described []uint8
		for _, token := range prefix.Describe(nil, lengths) {
			if uint(token.Extra)>>prefix.ExtraBits(token.Symbol) != 0 {
				t.Fatalf("%v has more bits than follow it", token)
			}
			switch token.Symbol {
			case prefix.Repeat:
				last := described[len(described)-1]
				if last == 0 {
					t.Fatal("a zero is repeated")
				}
				described = append(described, slices.Repeat([]uint8{last}, 3+int(token.Extra))...)
			case prefix.Zeros:
				described = append(described, make([]uint8, 3+token.Extra)...)
			case prefix.ManyZeros:
				described = append(described, make([]uint8, 11+int(token.Extra))...)
			default:
				described = append(described, token.Symbol)
			}
		}
		if diff := cmp.Diff(lengths, described); diff != "" {
			t.Fatalf("lengths (-want +got):\n%s", diff)
		}
	}
}
