package core

import "unicode"

// isLegible reports whether readers can tell a text from others: it has a visible character, and no
// line separators or Default_Ignorable_Code_Points, which are invisible (direction controls are
// among them). Joiners and variation selectors are allowed where they change what is shown: within
// emoji, and joiners between letters of scripts that use them.
func isLegible(text string) bool {
	runes := []rune(text)
	seen := false
	for i, r := range runes {
		switch {
		case r < unicode.MaxASCII:
			seen = seen || r > ' '
		case unicode.In(r, unicode.Zl, unicode.Zp):
			return false
		case ignorable(r):
			if !joins(r, runes[:i], runes[i+1:]) {
				return false
			}
		default:
			seen = seen || !unicode.In(r, unicode.Z, unicode.M) && r != brailleBlank
		}
	}
	return seen
}

// The characters that need special treatment.
const (
	zwnj            = '\u200c' // zero width non-joiner
	zwj             = '\u200d' // zero width joiner
	textSelector    = '\ufe0e' // shows the emoji before it as text
	pictureSelector = '\ufe0f' // shows the symbol before it as an emoji
	keycap          = '\u20e3' // encloses a digit, # or *
	lightestSkin    = '\U0001f3fb'
	darkestSkin     = '\U0001f3ff'
	brailleBlank    = '\u2800' // a symbol without a dot
)

// ignorable reports whether a character is a Default_Ignorable_Code_Point, derived as in Unicode's
// DerivedCoreProperties.txt.
func ignorable(r rune) bool {
	switch {
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case '\ufff9' <= r && r <= '\ufffb', '\U00013430' <= r && r <= '\U00013440':
		return false // controls of annotations and of hieroglyphs
	default:
		return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
}

// joins reports whether an ignorable character changes what is shown between the text before it and
// the text after.
func joins(r rune, before, after []rune) bool {
	last, next := lastOf(before), firstOf(after)
	switch r {
	case textSelector, pictureSelector:
		digit := '0' <= last && last <= '9' || last == '#' || last == '*'
		return unicode.Is(pictographs, last) || digit && next == keycap
	case zwj:
		for len(before) > 0 && modifiesPictograph(lastOf(before)) {
			before = before[:len(before)-1]
		}
		if unicode.Is(pictographs, lastOf(before)) && unicode.Is(pictographs, next) {
			return true
		}
		return betweenLetters(before, after)
	case zwnj:
		return betweenLetters(before, after)
	default:
		return false
	}
}

func modifiesPictograph(r rune) bool {
	return r == textSelector || r == pictureSelector || lightestSkin <= r && r <= darkestSkin
}

// betweenLetters reports whether the nearest letters on both sides of a joiner, combining marks
// skipped, are of scripts that use joiners.
func betweenLetters(before, after []rune) bool {
	for len(before) > 0 && isMark(lastOf(before)) {
		before = before[:len(before)-1]
	}
	for len(after) > 0 && isMark(firstOf(after)) {
		after = after[1:]
	}
	joined := func(r rune) bool { return unicode.IsLetter(r) && unicode.In(r, joining...) }
	return joined(lastOf(before)) && joined(firstOf(after))
}

// isMark reports whether a character is a visible combining mark.
func isMark(r rune) bool { return unicode.IsMark(r) && !ignorable(r) }

// lastOf and firstOf return 0 for no runes.
func lastOf(runes []rune) rune {
	if len(runes) == 0 {
		return 0
	}
	return runes[len(runes)-1]
}

func firstOf(runes []rune) rune {
	if len(runes) == 0 {
		return 0
	}
	return runes[0]
}

// joining lists the scripts that use joiners: cursive ones, and those with conjuncts (UAX #31,
// section 2.3).
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Phags_Pa,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
	unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese,
}

// pictographs is Unicode's property Extended_Pictographic (emoji-data.txt), which package unicode
// lacks. It includes code points that are reserved for future emoji.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xa9, 0xa9, 1},
		{0xae, 0xae, 1},
		{0x203c, 0x203c, 1},
		{0x2049, 0x2049, 1},
		{0x2122, 0x2122, 1},
		{0x2139, 0x2139, 1},
		{0x2194, 0x2199, 1},
		{0x21a9, 0x21aa, 1},
		{0x231a, 0x231b, 1},
		{0x2328, 0x2328, 1},
		{0x2388, 0x2388, 1},
		{0x23cf, 0x23cf, 1},
		{0x23e9, 0x23f3, 1},
		{0x23f8, 0x23fa, 1},
		{0x24c2, 0x24c2, 1},
		{0x25aa, 0x25ab, 1},
		{0x25b6, 0x25b6, 1},
		{0x25c0, 0x25c0, 1},
		{0x25fb, 0x25fe, 1},
		{0x2600, 0x2605, 1},
		{0x2607, 0x2612, 1},
		{0x2614, 0x2685, 1},
		{0x2690, 0x2705, 1},
		{0x2708, 0x2712, 1},
		{0x2714, 0x2714, 1},
		{0x2716, 0x2716, 1},
		{0x271d, 0x271d, 1},
		{0x2721, 0x2721, 1},
		{0x2728, 0x2728, 1},
		{0x2733, 0x2734, 1},
		{0x2744, 0x2744, 1},
		{0x2747, 0x2747, 1},
		{0x274c, 0x274c, 1},
		{0x274e, 0x274e, 1},
		{0x2753, 0x2755, 1},
		{0x2757, 0x2757, 1},
		{0x2763, 0x2767, 1},
		{0x2795, 0x2797, 1},
		{0x27a1, 0x27a1, 1},
		{0x27b0, 0x27b0, 1},
		{0x27bf, 0x27bf, 1},
		{0x2934, 0x2935, 1},
		{0x2b05, 0x2b07, 1},
		{0x2b1b, 0x2b1c, 1},
		{0x2b50, 0x2b50, 1},
		{0x2b55, 0x2b55, 1},
		{0x3030, 0x3030, 1},
		{0x303d, 0x303d, 1},
		{0x3297, 0x3297, 1},
		{0x3299, 0x3299, 1},
	},
	R32: []unicode.Range32{
		{0x1f000, 0x1f0ff, 1},
		{0x1f10d, 0x1f10f, 1},
		{0x1f12f, 0x1f12f, 1},
		{0x1f16c, 0x1f171, 1},
		{0x1f17e, 0x1f17f, 1},
		{0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1},
		{0x1f1ad, 0x1f1e5, 1},
		{0x1f201, 0x1f20f, 1},
		{0x1f21a, 0x1f21a, 1},
		{0x1f22f, 0x1f22f, 1},
		{0x1f232, 0x1f23a, 1},
		{0x1f23c, 0x1f23f, 1},
		{0x1f249, 0x1f3fa, 1},
		{0x1f400, 0x1f53d, 1},
		{0x1f546, 0x1f64f, 1},
		{0x1f680, 0x1f6ff, 1},
		{0x1f774, 0x1f77f, 1},
		{0x1f7d5, 0x1f7ff, 1},
		{0x1f80c, 0x1f80f, 1},
		{0x1f848, 0x1f84f, 1},
		{0x1f85a, 0x1f85f, 1},
		{0x1f888, 0x1f88f, 1},
		{0x1f8ae, 0x1f8ff, 1},
		{0x1f90c, 0x1f93a, 1},
		{0x1f93c, 0x1f945, 1},
		{0x1f947, 0x1faff, 1},
		{0x1fc00, 0x1fffd, 1},
	},
	LatinOffset: 2,
}
