package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/veneer-skins/veneer/shared/config"
)

// kubernetesVariable matches the variables that Kubernetes adds to every container for a
// service: NAME_SERVICE_HOST, NAME_PORT_80_TCP and the like.
var kubernetesVariable = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)$`)

// checkUnknown returns an error for a variable that begins with prefix but is not a setting
// of T, most likely a misspelt one. The error refers to the help of program.
func checkUnknown[T any](program, prefix string, environ []string) error {
	var names []string // without prefix
	for _, s := range config.List[T](prefix) {
		name := strings.TrimPrefix(s.Name, prefix)
		names = append(names, name, name+config.FileSuffix)
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || slices.Contains(names, rest) || kubernetesVariable.MatchString(rest) {
			continue
		}
		if near := nearest(rest, names); len(near) > 0 {
			return fmt.Errorf("%s is no setting; did you mean %s%s?", name, prefix, strings.Join(near, " or "+prefix))
		}
		return fmt.Errorf("%s is no setting; %s help lists them all", name, program)
	}
	return nil
}
