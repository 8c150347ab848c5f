package configtest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// declaration is where a setting is declared.
type declaration struct{ path, structure, name string }

// NamesInSource tests that each setting of T is in a comment of the package that declares it by its whole
// name, of which the field's tag has a part only: so a search for the name finds the code. module is the
// program's own one, with its directory; packages of other modules serve programs with other prefixes.
func NamesInSource[T any](t *testing.T, prefix, module, directory string) {
	t.Helper()
	sources, declared := map[string]string{}, 0
	for _, d := range declarations(reflect.TypeFor[T](), "", prefix) {
		below, isOwn := strings.CutPrefix(d.path, module)
		folder := filepath.Join(directory, below)
		if d.path == "main" { // the program itself, of which reflect does not know the path
			folder, isOwn = ".", true
		}
		if !isOwn {
			continue
		}
		declared++
		if sources[folder] == "" {
			sources[folder] = readPackage(t, folder)
		}
		testenv.Check(t, regexp.MustCompile(`\b`+d.name+`\b`).MatchString(sources[folder]),
			"%s: the comment of %s must name its setting %s", d.path, d.structure, d.name)
	}
	testenv.Check(t, declared >= 10, "%s declares only %d settings", module, declared)
}

// declarations returns the settings of a struct in a package, and of the structs in it.
func declarations(of reflect.Type, path, prefix string) (all []declaration) {
	if of.PkgPath() != "" {
		path = of.PkgPath()
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case name != "":
			all = append(all, declaration{path, of.Name(), prefix + name})
		case field.Type.Kind() == reflect.Struct:
			all = append(all, declarations(field.Type, path, prefix+field.Tag.Get("envPrefix"))...)
		}
	}
	return all
}

// readPackage returns the source of a package without its tests.
func readPackage(t *testing.T, folder string) (source string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content := testenv.Must(os.ReadFile(file))(t)
		source += string(content)
	}
	return source
}
