// Package spelling finds what a word was meant to be.
package spelling

// Nearest returns those of the words that differ least from a misspelt one, in their
// order. None is returned that differs in more than a third of its letters, or more
// than two of a short word.
func Nearest(misspelt string, words []string) []string {
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

// distance returns how many bytes must be inserted, deleted or replaced to make one
// word of another: Levenshtein's distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the beginning of a, to each beginning of b
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
