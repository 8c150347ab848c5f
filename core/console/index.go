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

// page matches a page in main.js: its path, and its module relative to main.js.
var page = regexp.MustCompile(`"(/[a-z/]*)": \{[^\n]*\bimport\("\./(pages/[^"]+)"\)`)

// pageModules returns the modules of the pages by the pages' paths, as in /players.
func pageModules() map[string]string {
	modules := map[string]string{}
	for _, match := range page.FindAllStringSubmatch(string(files()[mainName]), -1) {
		modules[match[1]] = path.Join(path.Dir(mainName), match[2])
	}
	return modules
}

// newIndexes returns the index pages by the paths of the pages, and their import map. They differ in
// the modules that the browser loads at once. That of all other paths has an empty path.
func newIndexes(picturesURL string) (indexes map[string]string, importMap string, err error) {
	template, err := embedded.ReadFile(indexName)
	if err != nil {
		return nil, "", err
	}
	imports := make(map[string]string, len(libraries))
	for name, file := range libraries {
		imports[name] = base() + "/" + file
	}
	encoded, err := json.Marshal(map[string]any{"imports": imports})
	if err != nil {
		return nil, "", err
	}
	indexes = map[string]string{}
	modules := pageModules()
	modules[""] = mainName
	for path, module := range modules {
		loaded, err := staticImports(mainName, module)
		if err != nil {
			return nil, "", err
		}
		var preloads strings.Builder
		for _, name := range loaded {
			fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base(), name)
		}
		indexes[path] = strings.NewReplacer(
			"{base}", base(), "{importmap}", string(encoded), "{preloads}", strings.TrimSuffix(preloads.String(), "\n"), "{pictures}", html.EscapeString(picturesURL),
		).Replace(string(template))
	}
	return indexes, string(encoded), nil
}

// staticImports returns modules and all modules that are loaded before they run, without duplicates.
func staticImports(names ...string) ([]string, error) {
	loaded := slices.Compact(names)
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
