package cli

// nearest returns the words with the smallest edit distance to a misspelt one, in their
// order. The distance is at most a third of its length, or two for a short word.
func nearest(misspelt string, words []string) []string {
	var nearest []string
	least := max(2, len(misspelt)/3)
	for _, word := range words {
		switch distance := distance(misspelt, word); {
		case distance > least:
		case distance < least:
			nearest, least = []string{word}, distance
		default:
			nearest = append(nearest, word)
		}
	}
	return nearest
}

// distance returns the Levenshtein distance of two words, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances from a prefix of a to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
