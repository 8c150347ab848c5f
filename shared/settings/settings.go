// Package settings reads a program's settings from its environment and lists
// them for people. A setting is a field of a struct:
//
//	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"address of the public listener"`
//
// Every setting NAME may be given as NAME_FILE instead, the path of a file that
// holds the value: secrets then show in no process list.
package settings

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/caarlos0/env/v11"
)

// Read fills a T from an environment in the form of os.Environ. The names of
// all its settings begin with prefix. The error is one line that names the
// setting.
func Read[T any](prefix string, environ []string) (T, error) {
	var none T
	settings, values := list(reflect.TypeFor[T](), prefix), env.ToMap(environ)
	for _, s := range settings {
		path, ok := values[s.name+fromFile]
		if !ok {
			continue
		}
		if _, both := values[s.name]; both {
			return none, fmt.Errorf("%s and %s are both set; which one counts?", s.name, s.name+fromFile)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return none, fmt.Errorf("%s cannot be read: %w", s.name+fromFile, err)
		}
		values[s.name] = strings.TrimRight(string(content), "\r\n")
	}
	config, err := env.ParseAsWithOptions[T](env.Options{Environment: values, Prefix: prefix})
	if err != nil {
		return none, explain(settings, values, err)
	}
	return config, nil
}

// fromFile follows the name of a setting whose value is in a file.
const fromFile = "_FILE"

// fromKubernetes matches what Kubernetes puts into every container's environment
// for a service: NAME_SERVICE_HOST, NAME_PORT_80_TCP and the like.
var fromKubernetes = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)$`)

// Unknown returns an error that names a variable of an environment which begins
// with prefix but is no setting of T: most likely a slip of the pen.
func Unknown[T any](prefix string, environ []string) error {
	known := map[string]bool{}
	for _, s := range list(reflect.TypeFor[T](), prefix) {
		known[s.name], known[s.name+fromFile] = true, true
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if rest, ok := strings.CutPrefix(name, prefix); ok && !known[name] && !fromKubernetes.MatchString(rest) {
			return fmt.Errorf("%s is no setting; help lists them all", name)
		}
	}
	return nil
}

// explain turns the parser's first complaint into a line that names the setting
// as the operator wrote it.
func explain(settings []setting, values map[string]string, err error) error {
	aggregate, ok := errors.AsType[env.AggregateError](err)
	if !ok || len(aggregate.Errors) == 0 {
		return err
	}
	first := aggregate.Errors[0]
	if missing, ok := errors.AsType[env.VarIsNotSetError](first); ok {
		return fmt.Errorf("%s must be set: it has no default", missing.Key)
	}
	if empty, ok := errors.AsType[env.EmptyVarError](first); ok {
		return fmt.Errorf("%s must not be empty", empty.Key)
	}
	if wrong, ok := errors.AsType[env.ParseError](first); ok {
		// The parser names the field of the struct. Only a value that was given can
		// be wrong; a field's name stands in few structs.
		var suspects []string
		for _, s := range settings {
			if _, given := values[s.name]; given && s.field == wrong.Name {
				suspects = append(suspects, s.name)
			}
		}
		return fmt.Errorf("%s is not understood: %w", strings.Join(suspects, " or "), wrong.Err)
	}
	return first
}

// Help writes one line for every setting of T: its name, default and meaning.
func Help[T any](w io.Writer, prefix string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list(reflect.TypeFor[T](), prefix) {
		value := s.value
		switch {
		case s.required:
			value = "(required)"
		case value == "":
			value = "(none)"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", s.name, value, s.help)
	}
	return table.Flush()
}

type setting struct {
	name, field, value, help string
	required                 bool
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// list returns the settings of a struct type in the order of its fields.
func list(t reflect.Type, prefix string) []setting {
	var settings []setting
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("env"), ",")
		if name == "" {
			if field.Type.Kind() == reflect.Struct && !reflect.PointerTo(field.Type).Implements(textUnmarshaler) {
				settings = append(settings, list(field.Type, prefix+field.Tag.Get("envPrefix"))...)
			}
			continue
		}
		settings = append(settings, setting{
			name: prefix + name, field: field.Name, value: field.Tag.Get("envDefault"), help: field.Tag.Get("help"),
			required: strings.Contains(options, "required") || strings.Contains(options, "notEmpty"),
		})
	}
	return settings
}
