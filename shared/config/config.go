// Package config reads a program's settings from its environment, lists them, and describes
// errors in them. A setting is a field of a struct:
//
//	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"address of the public listener"`
//	User   string `env:"USER" example:"veneer" needs:"PASSWORD" help:"user to sign in as"`
//
// Each has an example of a valid value, which is its default unless a tag gives another.
// needs lists settings of the same struct that must be set with it. The tags min and max are the
// smallest and the largest value of a number or a duration, above is a value that it must exceed,
// and oneof lists all values, separated by commas. A setting tagged random:"true" is the output of
// a shell command: the command itself is rejected, as no shell expands it in a file of settings for
// instance.
//
// Every setting NAME may be given as NAME_FILE instead, the path of a file with the value, so
// that secrets are in no process list.
//
// An error about a setting is an Error.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/caarlos0/env/v11"
)

// Setting is one setting of a program.
type Setting struct {
	Name     string // as in the environment
	Default  string // empty: none
	Example  string // a valid value
	Help     string
	Allowed  string // the values within its bounds, in words; empty if its type says it all
	Required bool   // it has no default, and must not be empty

	needs    []string // names of settings that must be set with it
	isRandom bool     // the output of a shell command
	prefix   string   // the part of Name that the field's tag lacks
	field    reflect.StructField
	index    []int // of the field in the struct that was listed
}

// Read fills a T from an environment in the form of os.Environ. The names of all its settings
// begin with prefix. The error is one line that begins with the name of the setting.
func Read[T any](prefix string, environ []string) (T, error) {
	var none T
	settings, values := List[T](prefix), env.ToMap(environ)
	if err := readFiles(settings, values); err != nil {
		return none, err
	}
	for _, s := range settings {
		if value, ok := values[s.Name]; ok && s.field.Type == reflect.TypeFor[[]netip.Prefix]() {
			values[s.Name] = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), ",")
		}
	}
	cfg, err := env.ParseAsWithOptions[T](env.Options{Environment: values, Prefix: prefix})
	if err != nil {
		return none, describeError(settings, values, err)
	}
	for _, s := range settings {
		if err := s.check(values, reflect.ValueOf(cfg).FieldByIndex(s.index)); err != nil {
			return none, err
		}
	}
	return cfg, nil
}

// readFiles sets the values of settings that are in files.
func readFiles(settings []Setting, values map[string]string) error {
	for _, s := range settings {
		if path, ok := values[s.Name+FileSuffix]; ok {
			if _, both := values[s.Name]; both {
				return Errorf(s.Name, "and %s are both set, but only one of them may be", s.Name+FileSuffix)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return Errorf(s.Name+FileSuffix, "names a file that cannot be read: %w", err)
			}
			values[s.Name] = strings.TrimRight(string(content), "\r\n")
		}
		if s.isRandom && strings.Contains(values[s.Name], "$(") {
			return Errorf(s.Name, "is a shell command and not its output")
		}
	}
	return nil
}

// check returns an error if the setting lacks another that it needs, or its value is out of bounds.
func (s Setting) check(values map[string]string, value reflect.Value) error {
	for _, other := range s.needs {
		if values[s.Name] != "" && values[other] == "" {
			return Errorf(other, "must be set too, since %s is", s.Name)
		}
	}
	return s.checkBounds(value)
}

// FileSuffix is appended to the name of a setting if its value is in a file.
const FileSuffix = "_FILE"

// describeError turns the first error of the parser into a line that begins with the name of
// the setting, and says what is allowed.
func describeError(settings []Setting, values map[string]string, err error) error {
	aggregate, ok := errors.AsType[env.AggregateError](err)
	if !ok || len(aggregate.Errors) == 0 {
		return err
	}
	first := aggregate.Errors[0]
	if missing, ok := errors.AsType[env.VarIsNotSetError](first); ok {
		return Errorf(missing.Key, "must be set: it has no default")
	}
	if empty, ok := errors.AsType[env.EmptyVarError](first); ok {
		return Errorf(empty.Key, "must not be empty")
	}
	// The parser's error has the name of the struct field, which is not unique, so each value
	// is parsed by itself.
	for _, s := range settings {
		value, given := values[s.Name]
		if !given {
			continue
		}
		single := reflect.New(reflect.StructOf([]reflect.StructField{s.field}))
		err := env.ParseWithOptions(single.Interface(), env.Options{Environment: map[string]string{s.Name: value}, Prefix: s.prefix})
		if aggregate, ok := errors.AsType[env.AggregateError](err); ok {
			return s.valueError(value, aggregate.Errors[0])
		}
	}
	return first
}

// valueError describes an error in a value.
func (s Setting) valueError(value string, err error) error {
	if parseErr, ok := errors.AsType[env.ParseError](err); ok {
		err = parseErr.Err
	}
	kind := s.field.Type.Kind()
	allowed, isCommon := commonTypes[s.field.Type]
	switch {
	case isCommon:
	case reflect.PointerTo(s.field.Type).Implements(textUnmarshaler): // it describes its own errors
		return Errorf(s.Name, "%w", err)
	case kind == reflect.Bool:
		allowed = "true or false"
	case kind == reflect.Float64:
		allowed = "a number, as in 0.01"
	case errors.Is(err, strconv.ErrRange):
		allowed = fmt.Sprintf("a whole number up to %d", int64(1)<<(s.field.Type.Bits()-1)-1)
	case kind == reflect.Int || kind == reflect.Int32 || kind == reflect.Int64:
		allowed = "a whole number"
	default:
		return fmt.Errorf("BUG: %s is of kind %s, for which nothing says what is allowed: %w", s.Name, kind, err)
	}
	return Errorf(s.Name, "is %.100q, but must be %s", value, allowed)
}

// commonTypes describes the valid values of some types.
var commonTypes = map[reflect.Type]string{
	reflect.TypeFor[time.Duration]():  "a time with its unit, as in 30s, 5m or 24h",
	reflect.TypeFor[slog.Level]():     "debug, info, warn or error",
	reflect.TypeFor[[]netip.Prefix](): "networks as in 10.0.0.0/8, separated by commas or blanks; a single address has /32 behind it, or /128",
}

// QuoteRedacted returns a value in quotes for errors, without the user and the password of a
// URL.
func QuoteRedacted(value string) string {
	at := strings.LastIndexByte(value, '@')
	if at < 0 {
		return strconv.Quote(value)
	}
	scheme, _, ok := strings.Cut(value[:at], "://")
	if ok {
		scheme += "://"
	} else {
		scheme = ""
	}
	return strconv.Quote(scheme + "…" + value[at:])
}

// ParseURL parses the URL of an HTTP server, with a host and a valid port. It returns false
// for any other text.
func ParseURL(text string) (*url.URL, bool) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" {
		return nil, false
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, false
		}
	}
	return parsed, true
}

// Help writes one line for every setting of T: its name, default and help.
func Help[T any](w io.Writer, prefix string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range List[T](prefix) {
		value := s.Default
		switch {
		case s.Required:
			value = "(required)"
		case value == "":
			value = "(none)"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", s.Name, value, s.Help)
	}
	return table.Flush()
}

// List returns the settings of T in the order of its fields.
func List[T any](prefix string) []Setting { return list(reflect.TypeFor[T](), prefix, nil) }

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// list returns the settings of a struct type, which is at an index of the struct that was listed.
func list(t reflect.Type, prefix string, index []int) []Setting {
	var settings []Setting
	for field := range t.Fields() {
		tag, index := field.Tag, append(slices.Clip(index), field.Index...)
		name, options, _ := strings.Cut(tag.Get("env"), ",")
		if name == "" {
			if field.Type.Kind() == reflect.Struct && !reflect.PointerTo(field.Type).Implements(textUnmarshaler) {
				settings = append(settings, list(field.Type, prefix+tag.Get("envPrefix"), index)...)
			}
			continue
		}
		s := Setting{
			Name: prefix + name, Default: tag.Get("envDefault"), Example: tag.Get("example"), Help: tag.Get("help"),
			Required: strings.Contains(options, "required") || strings.Contains(options, "notEmpty"),
			Allowed:  describeBounds(tag), isRandom: tag.Get("random") == "true", prefix: prefix, field: field, index: index,
		}
		if s.Example == "" {
			s.Example = s.Default
		}
		if needs := tag.Get("needs"); needs != "" {
			for other := range strings.SplitSeq(needs, ",") {
				s.needs = append(s.needs, prefix+other)
			}
		}
		settings = append(settings, s)
	}
	return settings
}
