package console

import (
	"encoding/json"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	indexName = "app/index.html"
	mainName  = "app/main.js"
)

// libraries are the vendored modules, by the names under which modules import them.
var libraries = map[string]string{
	"preact":               "vendor/preact.js",
	"preact/hooks":         "vendor/hooks.js",
	"@preact/signals":      "vendor/signals.js",
	"@preact/signals-core": "vendor/signals-core.js",
	"htm":                  "vendor/htm.js",
}

// newIndex returns the index page and its import map.
func newIndex(picturesURL string) (page, importMap string, err error) {
	template, err := embedded.ReadFile(indexName)
	if err != nil {
		return "", "", err
	}
	imports := make(map[string]string, len(libraries))
	for name, file := range libraries {
		imports[name] = base() + "/" + file
	}
	encoded, err := json.Marshal(map[string]any{"imports": imports})
	if err != nil {
		return "", "", err
	}
	modules, err := staticImports(mainName)
	if err != nil {
		return "", "", err
	}
	var preloads strings.Builder
	for _, name := range modules {
		fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base(), name)
	}
	return strings.NewReplacer(
		"{base}", base(), "{importmap}", string(encoded), "{preloads}", strings.TrimSuffix(preloads.String(), "\n"), "{pictures}", html.EscapeString(picturesURL),
	).Replace(string(template)), string(encoded), nil
}

// staticImports returns a module and all modules that are loaded before it runs, without duplicates.
func staticImports(name string) ([]string, error) {
	loaded := []string{name}
	for i := 0; i < len(loaded); i++ {
		static, _, err := importsOf(loaded[i])
		if err != nil {
			return nil, err
		}
		for _, imported := range static {
			if !slices.Contains(loaded, imported) {
				loaded = append(loaded, imported)
			}
		}
	}
	return loaded, nil
}

// Import declarations and re-exports, and calls of import with a literal. Modules of the console have
// no such text in strings or comments; a test checks that what they match exists.
var (
	staticImport  = regexp.MustCompile(`\b(?:import|export)\b[^"'();]*?\bfrom\s*["']([^"']+)["']|\bimport\s*["']([^"']+)["']`)
	dynamicImport = regexp.MustCompile(`\bimport\(\s*["']([^"']+)["']\s*\)`)
)

// importsOf returns the modules that a module imports before it runs, and those that it may load
// later.
func importsOf(name string) (static, dynamic []string, err error) {
	content := string(files()[name])
	for _, match := range staticImport.FindAllStringSubmatch(content, -1) {
		static = append(static, match[1]+match[2])
	}
	for _, match := range dynamicImport.FindAllStringSubmatch(content, -1) {
		dynamic = append(dynamic, match[1])
	}
	for _, specifiers := range [][]string{static, dynamic} {
		for i, specifier := range specifiers {
			if specifiers[i], err = resolve(name, specifier); err != nil {
				return nil, nil, err
			}
		}
	}
	return static, dynamic, nil
}

// resolve returns the file that a specifier in a module leads to.
func resolve(module, specifier string) (string, error) {
	file, ok := libraries[specifier]
	if strings.HasPrefix(specifier, ".") {
		file = path.Join(path.Dir(module), specifier)
		_, ok = files()[file]
	}
	if !ok {
		return "", fmt.Errorf("%s imports %q, but the console has no such module", module, specifier)
	}
	return file, nil
}
