package edge_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/config/configtest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	document := testenv.Must(os.ReadFile("../core/api/openapi.yaml"))(t)
	suffixes := map[string]bool{} // with the prefix
	var names []string            // of the views that share the names of routes
	for _, view := range edge.Views {
		for _, route := range view.Routes {
			name := view.RouteName(route)
			for _, suffix := range view.Suffixes {
				testenv.Check(t, !suffixes[route.Prefix+"*"+suffix], "%s: two routes have its prefix and suffix", name)
				suffixes[route.Prefix+"*"+suffix] = true
				testenv.Check(t, suffix == "" || !suffixes[route.Prefix+"*"],
					"%s: a route before it has all that it could", name)
			}
			testenv.Check(t, strings.Contains(string(document), name), "%s: core/api/openapi.yaml lacks it", name)
			if !strings.HasPrefix(route.Prefix, "/") || strings.HasSuffix(route.Prefix, "/") == (route.Subject == edge.ByNameParameter) || route.Help == "" {
				t.Errorf("%s: its prefix has no slash at one end, or it has no description", name)
			}
		}
		if name := view.Name(); view.HasDownload && !slices.Contains(names, name) {
			names = append(names, name)
		}
		testenv.Check(t, (view.Kind == edge.KindPicture) == (view.Picture != nil),
			"%s: only pictures show something in a mode", view.Routes[0].Prefix)
		testenv.Check(t, (view.Kind == edge.KindProfile) == (view.Profile != edge.NoProfile),
			"%s: only profiles have a format", view.Routes[0].Prefix)
		for i, suffix := range view.Suffixes {
			if slices.ContainsFunc(view.Suffixes[:i], func(before string) bool { return strings.HasSuffix(suffix, before) }) {
				t.Errorf("%s: the suffix %q is never found", view.Routes[0].Prefix, suffix)
			}
		}
		hasNames := slices.ContainsFunc(view.Routes, func(r edge.Route) bool { return r.Subject.IsName() })
		for _, suffix := range view.Suffixes {
			if hasNames && suffix != "" && !slices.Contains(edgeproto.Suffixes(), suffix) {
				t.Errorf("%s: core accepts names of players that end in %s: edgeproto.Suffixes lacks it", view.Routes[0].Prefix, suffix)
			}
		}
		if size := view.Picture; size != nil && (size.Mode.SizeOf(size.DefaultSize) != size.DefaultSize || size.Mode3D.SizeOf(size.DefaultSize) != size.DefaultSize) {
			t.Errorf("%s: the default size is not one that is drawn", view.Routes[0].Prefix)
		}
		if len(view.Warm) > 0 && !slices.ContainsFunc(view.Routes, func(r edge.Route) bool { return r.Subject == edge.ByHash }) {
			t.Errorf("%s: edge warm has only hashes", view.Routes[0].Prefix)
		}
	}
	enum := "enum: [" + strings.Join(names, ", ") + "]"
	testenv.Check(t, strings.Contains(string(document), enum), "core/api/openapi.yaml lacks the %s of a view", enum)
}

// What edge warm requests by default, by the hash of a texture.
func TestWarmPaths(t *testing.T) {
	t.Parallel()
	want := []string{"/avatar/hash/{hash}", "/avatar/hash/{hash}?png", "/avatar/hash/{hash}?3d", "/preview/hash/{hash}", "/textures/{hash}"}
	cmptest.Same(t, edge.WarmPaths(), want, "WarmPaths()")
}

// The tables of docs/pictures.md have all routes, of which those that respond with the same share a row,
// and all parameters.
func TestPicturesPage(t *testing.T) {
	t.Parallel()
	var views strings.Builder
	views.WriteString("\n| address | response | parameters | kept by caches for |\n|---|---|---|---|\n")
	for _, view := range edge.Views {
		for _, group := range view.Groups() {
			parameters := ""
			if names := view.Parameters(group[0].Subject); names != nil {
				parameters = code(names) + " "
			}
			addresses := make([]string, len(group))
			for i, route := range group {
				addresses[i] = view.Pattern(route)
			}
			fmt.Fprintf(&views, "| %s | %s | %s| %s |\n", code(addresses), group[0].Help, parameters, group[0].CacheClass.Lifetime())
		}
	}
	views.WriteString("\n")
	configtest.Section(t, "../docs/pictures.md", "views", views.String())

	var parameters strings.Builder
	parameters.WriteString("\n| parameter | values | effect | of |\n|---|---|---|---|\n")
	for _, parameter := range edge.Parameters {
		values := parameter.Values[0]
		if len(parameter.Values) > 1 {
			values = code(parameter.Values)
		}
		var uses []string
		for _, use := range parameter.Uses() {
			of := code(use.Views)
			if use.Default != "" {
				of += " (" + use.Default + ")"
			}
			uses = append(uses, of)
		}
		fmt.Fprintf(&parameters, "| `%s` | %s | %s | %s |\n", parameter.Name, values, parameter.Help, strings.Join(uses, ", "))
	}
	parameters.WriteString("\n")
	configtest.Section(t, "../docs/pictures.md", "parameters", parameters.String())
}

// code returns a list of code in Markdown.
func code(list []string) string { return "`" + strings.Join(list, "`, `") + "`" }

// Every parameter of a view is described, and every description is of some view.
func TestParameters(t *testing.T) {
	t.Parallel()
	var described, used []string
	for _, parameter := range edge.Parameters {
		described = append(described, parameter.Name)
		testenv.Check(t, len(parameter.Uses()) != 0, "no view has the parameter %s", parameter.Name)
		for _, use := range parameter.Uses() {
			if use.Default != "" && len(parameter.Values) > 1 && !slices.Contains(parameter.Values, use.Default) {
				t.Errorf("the default %s of %s is none of its values", use.Default, parameter.Name)
			}
		}
	}
	for _, view := range edge.Views {
		for _, route := range view.Routes {
			used = append(used, view.Parameters(route.Subject)...)
		}
	}
	for _, name := range used {
		testenv.Check(t, slices.Contains(described, name), "the parameter %s is not described", name)
	}
}

// Values are found by their names in any case, and listed in sentences.
func TestValues(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"sneak": true, "SNEAK": true, " sneak": false, "sneak ": false, "snea\xcb": false, "": false,
	} {
		pose, ok := edge.Poses.Parse(name)
		testenv.Equal(t, ok && pose == render.Sneak, want, "%q is a pose", name)
	}
	testenv.Equal(t, edge.Tilts.List("or"), "iso, 25 or 0", "the tilts")
}
