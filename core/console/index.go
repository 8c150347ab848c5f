package console

import (
	"encoding/json"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/veneer-skins/veneer/core"
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

// pageModules returns the modules of the pages by the pages' paths: /players is app/pages/players.js,
// / is app/pages/home.js, and /admin is app/pages/admin/counts.js. main.js has the same paths, as a test demands.
func pageModules() map[string]string {
	modules := map[string]string{}
	for name := range files() {
		if page, ok := strings.CutPrefix(name, "app/pages/"); ok {
			modules["/"+strings.TrimSuffix(page, ".js")] = name
		}
	}
	for path, module := range map[string]string{"/": "/home", "/admin": "/admin/counts"} {
		modules[path] = modules[module]
		delete(modules, module)
	}
	return modules
}

// languages returns the languages of the pages: every module in app/words is one.
func languages() (all []string) {
	for name := range files() {
		if file, ok := strings.CutPrefix(name, "app/words/"); ok {
			all = append(all, strings.TrimSuffix(file, ".js"))
		}
	}
	slices.Sort(all)
	return all
}

// newIndexes returns the index pages by the paths of the pages. They differ in the modules that the browser
// loads at once. That of all other paths has an empty path.
func newIndexes(site Site, accentPath string, texts *core.SiteTexts) (indexes map[string]string, err error) {
	template, err := embedded.ReadFile(indexName)
	if err != nil {
		return nil, err
	}
	operator, err := json.Marshal(newOperator(site.Branding, texts))
	if err != nil {
		return nil, err
	}
	accentLink := ""
	if accentPath != "" {
		accentLink = `<link rel="stylesheet" href="` + accentPath + `">`
	}
	indexes = map[string]string{}
	languages := strings.Join(languages(), " ")
	modules := pageModules()
	modules[""] = mainName
	for path, module := range modules {
		loaded, err := staticImports(mainName, module)
		if err != nil {
			return nil, err
		}
		var preloads strings.Builder
		for _, name := range loaded {
			fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base(), name)
		}
		indexes[path] = strings.NewReplacer(
			"{base}", base(), "{preloads}", strings.TrimSuffix(preloads.String(), "\n"), "{pictures}", html.EscapeString(site.PicturesURL),
			"{name}", html.EscapeString(site.Branding.Name), "{description}", html.EscapeString(site.Branding.Description), "{logo}", site.LogoPath, "{accent}", accentLink,
			"{languages}", languages,
			"{operator}", html.EscapeString(string(operator)),
		).Replace(string(template))
	}
	return indexes, nil
}

// libraryImport matches the name of a library in an import, or in the type of a comment.
var libraryImport = regexp.MustCompile(`(\b(?:from|import\()\s*["'])([@a-z][^"']*)(["'])`)

// withPaths returns a module with the paths of the libraries that it imports, in place of their names: Safari
// before 16.4 and Firefox before 108 have no import maps.
func withPaths(module string, content []byte) []byte {
	toRoot := strings.Repeat("../", strings.Count(module, "/"))
	return libraryImport.ReplaceAllFunc(content, func(found []byte) []byte {
		parts := libraryImport.FindSubmatch(found)
		file, ok := libraries[string(parts[2])]
		if !ok {
			return found
		}
		return slices.Concat(parts[1], []byte(toRoot+file), parts[3])
	})
}

// operator is what the operator tells visitors, by the languages of the console.
type operator struct {
	Contact      string                    `json:"contact"` // URL
	Pages        map[string][]operatorPage `json:"pages"`
	Announcement map[string]string         `json:"announcement"` // HTML
}

type operatorPage struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

func newOperator(branding core.Branding, texts *core.SiteTexts) operator {
	o := operator{branding.ContactURL(), map[string][]operatorPage{}, map[string]string{}}
	for _, language := range languages() {
		o.Pages[language] = []operatorPage{}
		for _, page := range texts.Pages(language) {
			o.Pages[language] = append(o.Pages[language], operatorPage{page.Name, page.Title})
		}
		if announcement, ok := texts.Page(core.Announcement, language); ok {
			o.Announcement[language] = announcement.HTML
		}
	}
	return o
}

// staticImports returns modules and all modules that are loaded before they run, without duplicates.
func staticImports(names ...string) ([]string, error) {
	loaded := slices.Compact(names)
	for i := 0; i < len(loaded); i++ {
		all, err := imports()
		if err != nil {
			return nil, err
		}
		for _, imported := range all[loaded[i]].static {
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

// moduleImports are the modules that a module imports before it runs, and those that it may load later.
type moduleImports struct{ static, dynamic []string }

// imports returns the imports of all modules. They are found once: the pages share most modules.
var imports = sync.OnceValues(func() (map[string]moduleImports, error) {
	all := map[string]moduleImports{}
	for name, content := range files() {
		if path.Ext(name) != ".js" {
			continue
		}
		var found moduleImports
		for _, match := range staticImport.FindAllSubmatch(content, -1) {
			found.static = append(found.static, string(match[1])+string(match[2]))
		}
		for _, match := range dynamicImport.FindAllSubmatch(content, -1) {
			found.dynamic = append(found.dynamic, string(match[1]))
		}
		for _, specifiers := range [][]string{found.static, found.dynamic} {
			for i, specifier := range specifiers {
				var err error
				if specifiers[i], err = resolve(name, specifier); err != nil {
					return nil, err
				}
			}
		}
		all[name] = found
	}
	return all, nil
})

// resolve returns the file that a specifier in a module leads to.
func resolve(module, specifier string) (string, error) {
	file := path.Join(path.Dir(module), specifier)
	if _, ok := files()[file]; !ok || !strings.HasPrefix(specifier, ".") {
		return "", fmt.Errorf("%s imports %q, but the console has no such module", module, specifier)
	}
	return file, nil
}
