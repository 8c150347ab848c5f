package console

// Files returns the content of the files by the path at which they are served.
func Files() map[string][]byte {
	all := map[string][]byte{}
	for name, content := range files() {
		all[base()+"/"+name] = content
	}
	return all
}

// Modules returns the content of the files by name.
func Modules() map[string][]byte { return files() }

// ImportsOf returns the modules that a module imports before it runs, and later.
func ImportsOf(name string) (static, dynamic []string, err error) {
	all, err := imports()
	return all[name].static, all[name].dynamic, err
}

// Parts of the index page's construction.
var (
	StaticImports = staticImports
	PageModules   = pageModules
	Languages     = languages
)
