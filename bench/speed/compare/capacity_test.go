package compare

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/testenv"
)

var (
	planBlocks  = regexp.MustCompile("(?s)```go\n(.*?)```")
	planResults = regexp.MustCompile(`\((\.\./bench/[^)]*/results\.json)\)`)
	planCost    = regexp.MustCompile(`; measured: "([^"]+)", (.+)$`)
	planStep    = regexp.MustCompile(`; measured: (\w+) at ([0-9]+), "([^"]+)"$`)
	planGiven   = regexp.MustCompile(`; (asked|chosen)(: .+)?$`)
	planValue   = regexp.MustCompile(`^[0-9.,]+`)
)

// The figures of docs/capacity.md are constants of Go, so that they can be checked: a literal must
// be a requirement, a choice or a figure of a run that the page links, and a formula must come to
// the value in its comment.
func TestCapacity(t *testing.T) {
	t.Parallel()
	page := testenv.Must(os.ReadFile("../../../docs/capacity.md"))(t)
	var runs []*results.Run
	for _, link := range planResults.FindAllSubmatch(page, -1) {
		runs = append(runs, testenv.Must(results.Read("../../../docs/"+string(link[1])))(t))
	}
	var source strings.Builder
	source.WriteString("package plan\nconst (\n")
	for _, block := range planBlocks.FindAllSubmatch(page, -1) {
		source.Write(block[1])
	}
	source.WriteString(")\n")
	files := token.NewFileSet()
	file := testenv.Must(parser.ParseFile(files, "../../../docs/capacity.md", source.String(), parser.ParseComments))(t)
	// Integer literals become floats, so that 1/2 is 0.5.
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.INT {
			literal.Kind, literal.Value = token.FLOAT, literal.Value+".0"
		}
		return true
	})
	plan := testenv.Must(new(types.Config).Check("plan", files, []*ast.File{file}, nil))(t)

	measured, formulas := 0, 0
	declared, _ := file.Decls[0].(*ast.GenDecl) // there is no other declaration
	for _, line := range declared.Specs {
		spec, _ := line.(*ast.ValueSpec)
		name, comment := spec.Names[0].Name, strings.TrimSpace(spec.Comment.Text())
		value := 0.0
		if object, ok := plan.Scope().Lookup(name).(*types.Const); ok {
			value, _ = constant.Float64Val(object.Val())
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			formulas++
			if printed := planValue.FindString(comment); printed == "" || !matchesText(value, printed) {
				t.Errorf("%s is %v, and the page says %q", name, value, comment)
			}
			continue
		}
		if planGiven.MatchString(comment) {
			continue
		}
		measured++
		if figures := figuresOf(runs, comment); !slices.ContainsFunc(figures, func(figure float64) bool { return matchesText(figure, literal.Value) }) {
			t.Errorf("%s is %v, and %v is what was measured of %q", name, value, figures, comment)
		}
	}
	if measured < 10 || formulas < 20 {
		t.Errorf("there are %d measured numbers and %d formulas; want 10 and 20 of them", measured, formulas)
	}
}

// figuresOf returns the median that a comment names, of each run that has it.
func figuresOf(runs []*results.Run, comment string) (figures []float64) {
	cost, step := planCost.FindStringSubmatch(comment), planStep.FindStringSubmatch(comment)
	for _, run := range runs {
		for _, c := range run.Costs {
			if cost != nil && c.Name == cost[1] && c.Method == cost[2] {
				figures = append(figures, results.Summarize(c.Rounds).Median)
			}
		}
		for _, sweep := range run.Sweeps {
			for _, at := range sweep.Steps {
				for _, figure := range at.Figures {
					if step != nil && sweep.Name == step[1] && fmt.Sprint(int(at.At)) == step[2] && figure.Name == step[3] {
						figures = append(figures, results.Summarize(figure.Rounds).Median)
					}
				}
			}
		}
	}
	return figures
}

// matchesText reports whether a text shows a number to three significant digits.
func matchesText(value float64, text string) bool {
	printed, err := strconv.ParseFloat(strings.TrimSuffix(strings.ReplaceAll(text, ",", ""), "."), 64)
	return err == nil && math.Abs(value-printed) <= 0.005*math.Abs(value)
}
