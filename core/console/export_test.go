package console

// Base returns the path of the files.
func Base() string { return base() }

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

// Parts of the index page's construction.
var (
	ImportsOf     = importsOf
	StaticImports = staticImports
	PageModules   = pageModules
)
