package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// EnvFile writes every setting of T to an environment file of Docker Compose, commented out,
// below its help, with its default as the value:
//
//	# address of the public listener
//	#X_LISTEN=127.0.0.1:8080
//
// The keys of both maps are names of settings. The values in defaults replace those of T.
// Settings in external are set elsewhere, in the place that the map's value names, and get no
// line. A required setting must be in one of the two.
func EnvFile[T any](w io.Writer, prefix string, defaults, external map[string]string) error {
	var file strings.Builder
	program := strings.ToLower(strings.TrimSuffix(prefix, "_"))
	writeComment(&file, "Settings of "+program+" for docker-compose.yml. Copy this file to "+program+".env beside it, and "+
		"take the # from the settings that you change. Each has the value here that it has without its line. "+
		`A value with a space or one of $ # " \ is put in single quotes.`)
	unused := slices.Concat(slices.Collect(maps.Keys(defaults)), slices.Collect(maps.Keys(external)))
	for _, s := range List[T](prefix) {
		unused = slices.DeleteFunc(unused, func(name string) bool { return name == s.Name })
		fmt.Fprintln(&file)
		writeComment(&file, s.Help)
		if place, ok := external[s.Name]; ok {
			writeComment(&file, s.Name+" is not set here: "+place)
			continue
		}
		value, ok := defaults[s.Name]
		if !ok {
			if value = s.Default; s.Required {
				return fmt.Errorf("%s has no default, so it must be given one here or be set elsewhere", s.Name)
			}
		}
		fmt.Fprintf(&file, "#%s=%s\n", s.Name, quote(value))
	}
	if len(unused) > 0 {
		return fmt.Errorf("there is no setting %s", slices.Min(unused))
	}
	_, err := io.WriteString(w, file.String())
	return err
}

// writeComment writes a text in lines of at most 90 characters.
func writeComment(file *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(" ")+len(word) > 90 {
			fmt.Fprintln(file, line)
			line = "#"
		}
		line += " " + word
	}
	fmt.Fprintln(file, line)
}

// quote puts a value into single quotes if Compose would interpret it otherwise.
func quote(value string) string {
	if strings.ContainsAny(value, " $#\"\\") {
		return "'" + value + "'"
	}
	return value
}
