package webp

import (
	"math/bits"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// stream writes images as entropy-coded streams. It is scratch memory.
type stream struct {
	parser parser
	coder  coder
	cache  cache
	groups entropyGroups
	counts histogram
	first  draft
	group  [maxGroups]struct {
		counts histogram
		costs  costs
		codes  [5]code // in the order of the file
	}
}

// draft is a first tokenisation of an image.
type draft struct {
	tokens    []token
	cacheBits uint
	counts    histogram // of the symbols, with that cache
	cost      uint64    // of the tokens and the descriptions of the codes, estimated
}

// kind is what is known in advance of an image.
type kind struct {
	minCopy   int // shortest copy in a draft, in pixels
	distances int // how many of the nearby distances are tried

	noisy   bool // nearly all pixels are literals
	indices bool // pixels are indices of a palette, so a cache gains little
}

var (
	crisp      = kind{minCopy: 1, distances: len(nearby)}    // texels are many pixels wide
	smooth     = kind{minCopy: 2, distances: len(nearby)}    // texels are few pixels wide
	difference = kind{minCopy: 8, distances: 3, noisy: true} // residuals of predictors
)

// draft makes a draft of an image.
func (s *stream) draft(to *draft, r *raster, k kind) {
	to.tokens = append(to.tokens[:0], s.parser.guess(r, k)...)
	s.chooseCache(to, r, k)
}

// writeAux writes an auxiliary image.
func (s *stream) writeAux(w *prefix.Writer, r *raster, first *draft) {
	tokens := s.refine(r, first)
	s.writeCache(w, first.cacheBits)
	s.writeTokens(w, r, tokens)
}

// writePicture writes the main image. With aux it writes the entropy image, if there is one.
func (s *stream) writePicture(w *prefix.Writer, r *raster, first *draft, aux *stream) {
	tokens := s.refine(r, first)
	if len(r.px) >= minGroupPixels && len(r.runs) <= maxRefinedRuns {
		s.split(r, tokens, first.cacheBits)
	}
	s.writeCache(w, first.cacheBits)
	if s.groups.count == 1 {
		w.Write(0, 1)
	} else {
		w.Write((groupBits-2)<<1|1, 4)
		groupImage := s.groups.image()
		aux.draft(&aux.first, groupImage, crisp)
		aux.writeAux(w, groupImage, &aux.first)
	}
	s.writeTokens(w, r, tokens)
}

// refine returns better tokens than the draft's, and leaves their symbols counted and
// their costs in the first group. Each pass makes the next one a little cheaper; short images
// get two.
func (s *stream) refine(r *raster, first *draft) []token {
	const short = 400 // tokens
	s.groups.count = 1
	counts, costs := &s.group[0].counts, &s.group[0].costs
	if len(r.runs) > maxRefinedRuns {
		tokens := s.withCache(r, first)
		counts.count(r, tokens, first.cacheBits)
		return tokens
	}
	s.cache.fill(r, first.cacheBits)
	costs.learn(&first.counts)
	tokens := s.parser.parse(r, costs, &s.cache)
	counts.count(r, tokens, first.cacheBits)
	costs.learn(counts)
	if len(tokens) < short {
		tokens = s.parser.parse(r, costs, &s.cache)
		counts.count(r, tokens, first.cacheBits)
	}
	return tokens
}

// maxRefinedRuns is the number of runs up to which the tokens of an image are refined.
const maxRefinedRuns = 1 << 17

// withCache returns the tokens of a draft, which was made without a cache, with cached pixels
// taken from its cache.
func (s *stream) withCache(r *raster, first *draft) []token {
	if first.cacheBits == 0 {
		return first.tokens
	}
	s.cache.clear(first.cacheBits)
	i, run := 0, 0
	for n, t := range first.tokens {
		cached := true // true within a run
		for end := i + t.pixels(); run < len(r.runs) && int(r.runs[run]) < end; run++ {
			cached = s.cache.put(r.px[r.runs[run]])
		}
		if cached && t.length == 0 {
			first.tokens[n] = token{cached: true, value: uint32(cacheIndex(r.px[i], first.cacheBits))}
		}
		i += t.pixels()
	}
	return first.tokens
}

func (s *stream) writeCache(w *prefix.Writer, cacheBits uint) {
	if cacheBits == 0 {
		w.Write(0, 1)
	} else {
		w.Write(uint64(cacheBits)<<1|1, 5)
	}
}

// writeTokens writes the codes of all groups and the tokens.
func (s *stream) writeTokens(w *prefix.Writer, r *raster, tokens []token) {
	for k := range s.groups.count {
		g := &s.group[k]
		g.counts.each(func(i int, counts []uint32) {
			s.coder.fit(&g.codes[i], counts)
			g.codes[i].writeDescription(w)
		})
	}
	i := 0
	for _, t := range tokens {
		codes := &s.group[s.groups.at(i)].codes
		green, red, blue, alpha, distance := &codes[0], &codes[1], &codes[2], &codes[3], &codes[4]
		switch {
		case t.length > 0:
			symbol, extra, rest := prefixOf(int(t.length))
			green.write(w, channelSymbols+symbol)
			w.Write(rest, extra)
			symbol, extra, rest = prefixOf(int(t.value))
			distance.write(w, symbol)
			w.Write(rest, extra)
		case t.cached:
			green.write(w, cacheSymbols+int(t.value))
		default:
			v := r.px[i]
			green.write(w, int(v>>8&255))
			red.write(w, int(v>>16&255))
			blue.write(w, int(v&255))
			alpha.write(w, int(v>>24))
		}
		i += t.pixels()
	}
}

// chooseCache finds the cache size with which a draft is cheapest, or nearly so: from the size
// that suits most images it goes up or down as long as that gains.
func (s *stream) chooseCache(to *draft, r *raster, k kind) {
	literals := 0
	for _, t := range to.tokens {
		if t.length == 0 {
			literals++
		}
	}
	start, step := k.cacheStart(literals, len(r.px))
	if step == 0 && start > 0 {
		s.countWith(&to.counts, r, to.tokens, start)
		to.cacheBits, to.cost = start, to.counts.cost()
		return
	}
	to.counts.count(r, to.tokens, 0)
	to.cacheBits, to.cost = 0, to.counts.cost()
	if step == 0 {
		return
	}
	pays := func(cacheBits uint) bool {
		if cacheBits < 2 || cacheBits > maxCacheBits || 1<<cacheBits >= 2*literals {
			return false
		}
		s.countWith(&s.counts, r, to.tokens, cacheBits)
		cost := s.counts.cost()
		if cost >= to.cost {
			return false
		}
		to.cacheBits, to.cost = cacheBits, cost
		to.counts, s.counts = s.counts, to.counts
		return true
	}
	up := pays(start)
	for bits := start - step; pays(bits); bits -= step {
		up = false
	}
	for bits := start + step; up && pays(bits); bits += step {
	}
}

// cacheStart returns a cache size, in bits, that suits most images of that many pixels and
// literals, and the step in which to look for a better one, or 0 if that is not worth the time.
func (k kind) cacheStart(literals, pixels int) (start, step uint) {
	const few, some, many, small, large = 300, 450, 4096, 1 << 13, 1 << 18
	size := uint(bits.Len(uint(literals)))
	switch {
	case k.indices && k.minCopy == crisp.minCopy && literals < some:
		return 0, 0
	case k.indices:
		return 4, 2
	case literals < few:
		return max(size, 3) - 1, 1
	case !k.noisy && small <= pixels && pixels < large:
		return min((size-3)&^1, maxCacheBits), 0
	case !k.noisy:
		return min((size-3)&^1, maxCacheBits), 2
	case literals < many:
		return (size - 6) &^ 1, 2
	default:
		return min((size-6)&^1, maxCacheBits), 0
	}
}

// countWith counts the symbols of tokens made without a cache as if they used one.
func (s *stream) countWith(h *histogram, r *raster, tokens []token, cacheBits uint) {
	h.reset(cacheBits)
	s.cache.clear(cacheBits)
	i, run := 0, 0
	for _, t := range tokens {
		cached := true // true within a run
		for end := i + t.pixels(); run < len(r.runs) && int(r.runs[run]) < end; run++ {
			cached = s.cache.put(r.px[r.runs[run]])
		}
		if cached && t.length == 0 {
			t = token{cached: true, value: uint32(cacheIndex(r.px[i], cacheBits))}
		}
		h.add(r, i, t)
		i += t.pixels()
	}
}
