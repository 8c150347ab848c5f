package stack

import (
	"regexp"
	"strings"
	"testing"
)

// Block is a fenced block of shell commands in a page, with the words after "sh" as its labels.
type Block struct {
	Labels   []string
	Commands string
}

var fence = regexp.MustCompile("(?ms)^```sh(.*?)\n(.*?)^```$")

// Blocks returns the blocks of a page of a repository, in their order.
func Blocks(tb testing.TB, root, page string) (blocks []Block) {
	tb.Helper()
	for _, match := range fence.FindAllStringSubmatch(read(tb, root, page), -1) {
		blocks = append(blocks, Block{strings.Fields(match[1]), match[2]})
	}
	return blocks
}
