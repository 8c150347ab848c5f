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
	groups groups
	counts histogram
	first  sketch
	group  [maxGroups]struct {
		counts histogram
		prices prices
		codes  [5]code // in the order in which they are told
	}
}

// sketch is a first description of an image.
type sketch struct {
	tokens    []token
	cacheBits uint
	counts    histogram // of its symbols, with that cache
	price     uint64    // about what it takes to write it and to tell its codes
}

// kind is what is known beforehand of an image.
type kind struct {
	shortest int // the shortest copies in its sketch, in pixels
	sources  int // how many near ones they come from

	noisy  bool // nearly all is literals
	places bool // in a palette, which leaves little to do for a cache
}

var (
	crisp      = kind{shortest: 1, sources: len(nearby)}    // texels are many pixels wide
	smooth     = kind{shortest: 2, sources: len(nearby)}    // texels are few pixels wide
	difference = kind{shortest: 8, sources: 3, noisy: true} // from what was expected
)

// sketch makes a first description of an image.
func (s *stream) sketch(to *sketch, r *raster, k kind) {
	to.tokens = append(to.tokens[:0], s.parser.guess(r, k)...)
	s.chooseCache(to, r, k)
}

// small writes an image that tells of another one.
func (s *stream) small(w *prefix.Writer, r *raster, first *sketch) {
	tokens := s.improve(r, first)
	s.writeCache(w, first.cacheBits)
	s.writeTokens(w, r, tokens)
}

// picture writes the image that a reader turns into the picture. With the aside it
// writes one that tells where in the picture which codes are used.
func (s *stream) picture(w *prefix.Writer, r *raster, first *sketch, aside *stream) {
	tokens := s.improve(r, first)
	if len(r.px) >= worthGroups && len(r.runs) <= vast {
		s.split(r, tokens, first.cacheBits)
	}
	s.writeCache(w, first.cacheBits)
	if s.groups.count == 1 {
		w.Write(0, 1)
	} else {
		w.Write((groupBits-2)<<1|1, 4)
		where := s.groups.image()
		aside.sketch(&aside.first, where, crisp)
		aside.small(w, where, &aside.first)
	}
	s.writeTokens(w, r, tokens)
}

// improve returns a better description than a first one, and leaves its symbols
// counted and priced in the first group. What one description teaches makes the
// next one cheaper, a little; where that takes no time it does so twice.
func (s *stream) improve(r *raster, first *sketch) []token {
	const short = 400 // tokens
	s.groups.count = 1
	counts, prices := &s.group[0].counts, &s.group[0].prices
	if len(r.runs) > vast {
		tokens := s.cached(r, first)
		counts.count(r, tokens, first.cacheBits)
		return tokens
	}
	s.cache.fill(r, first.cacheBits)
	prices.learn(&first.counts)
	tokens := s.parser.parse(r, prices, &s.cache)
	counts.count(r, tokens, first.cacheBits)
	prices.learn(counts)
	if len(tokens) < short {
		tokens = s.parser.parse(r, prices, &s.cache)
		counts.count(r, tokens, first.cacheBits)
	}
	return tokens
}

// vast is how many runs an image may have whose description is improved.
const vast = 1 << 17

// cached returns the tokens of a first description, which was made without a cache, with
// those pixels taken from one that it has.
func (s *stream) cached(r *raster, first *sketch) []token {
	if first.cacheBits == 0 {
		return first.tokens
	}
	s.cache.clear(first.cacheBits)
	i, run := 0, 0
	for n, t := range first.tokens {
		held := true // within a run
		for end := i + t.pixels(); run < len(r.runs) && int(r.runs[run]) < end; run++ {
			held = s.cache.put(r.px[r.runs[run]])
		}
		if held && t.length == 0 {
			first.tokens[n] = token{cached: true, value: uint32(cachePlace(r.px[i], first.cacheBits))}
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

// writeTokens tells the codes of all groups and writes the tokens with them.
func (s *stream) writeTokens(w *prefix.Writer, r *raster, tokens []token) {
	for k := range s.groups.count {
		g := &s.group[k]
		g.counts.each(func(i int, counts []uint32) {
			s.coder.fit(&g.codes[i], counts)
			g.codes[i].tellTo(w)
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

// chooseCache finds the size of the cache with which a description is cheapest, or
// one close to it: it goes from the size that mostly suits up or down as long as
// that pays.
func (s *stream) chooseCache(to *sketch, r *raster, k kind) {
	literals := 0
	for _, t := range to.tokens {
		if t.length == 0 {
			literals++
		}
	}
	start, step := k.suits(literals, len(r.px))
	if step == 0 && start > 0 {
		s.countWith(&to.counts, r, to.tokens, start)
		to.cacheBits, to.price = start, to.counts.price()
		return
	}
	to.counts.count(r, to.tokens, 0)
	to.cacheBits, to.price = 0, to.counts.price()
	if step == 0 {
		return
	}
	pays := func(cacheBits uint) bool {
		if cacheBits < 2 || cacheBits > maxCacheBits || 1<<cacheBits >= 2*literals {
			return false
		}
		s.countWith(&s.counts, r, to.tokens, cacheBits)
		price := s.counts.price()
		if price >= to.price {
			return false
		}
		to.cacheBits, to.price = cacheBits, price
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

// suits returns a size of the cache, in bits, that mostly suits an image of so many
// pixels with so many literals, and in which steps to look for a better one, 0 if
// that does not pay.
func (k kind) suits(literals, pixels int) (start, step uint) {
	const few, some, many, small, large = 300, 450, 4096, 1 << 13, 1 << 18
	size := uint(bits.Len(uint(literals)))
	switch {
	case k.places && k.shortest == crisp.shortest && literals < some:
		return 0, 0
	case k.places:
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

// countWith counts the symbols of a description that was made without a cache, as
// if it took from one what it can.
func (s *stream) countWith(h *histogram, r *raster, tokens []token, cacheBits uint) {
	h.reset(cacheBits)
	s.cache.clear(cacheBits)
	i, run := 0, 0
	for _, t := range tokens {
		held := true // within a run
		for end := i + t.pixels(); run < len(r.runs) && int(r.runs[run]) < end; run++ {
			held = s.cache.put(r.px[r.runs[run]])
		}
		if held && t.length == 0 {
			t = token{cached: true, value: uint32(cachePlace(r.px[i], cacheBits))}
		}
		h.add(r, i, t)
		i += t.pixels()
	}
}
