package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is an error about a setting. Its text is one line that begins with the name.
type Error struct {
	Setting string // the name, or the end of it: callers that know the rest add it with In
	Cause   error  // what is wrong, as in "is 5, but must be 1 to 3"
	Example string // a valid value if the example of the setting is none
	// IsFinal tells that only a change of the setting can fix it, such as a wrong password. A server
	// that is down comes back by itself.
	IsFinal bool
}

// Error returns the name of the setting and what is wrong.
func (e *Error) Error() string { return e.Setting + " " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an Error about a setting. The format is of fmt.Errorf.
func Errorf(setting, format string, args ...any) error {
	return &Error{Setting: setting, Cause: fmt.Errorf(format, args...)}
}

// Finalf returns an Error that only a change of the setting can fix.
func Finalf(setting, format string, args ...any) error {
	return &Error{Setting: setting, Cause: fmt.Errorf(format, args...), IsFinal: true}
}

// Final returns an Error of a dependency as one that only a change of the setting can fix.
func Final(err error) error {
	about, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	final := *about
	final.IsFinal = true
	return &final
}

// In adds the first part of the name to an Error about a setting. It returns other errors unchanged.
func In(prefix string, err error) error {
	about, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	named := *about
	named.Setting = prefix + about.Setting
	return &named
}

// IsFinal reports whether an error is an Error that only a change of a setting can fix.
func IsFinal(err error) bool {
	about, ok := errors.AsType[*Error](err)
	return ok && about.IsFinal
}

// Explain adds an example of a valid value to an Error about a setting of T. It returns other errors
// unchanged.
func Explain[T any](prefix string, err error) error {
	about, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	settings, name, inFile := List[T](prefix), about.Setting, false
	if !slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name }) {
		name, inFile = strings.CutSuffix(name, FileSuffix)
	}
	for _, s := range settings {
		if s.Name != name {
			continue
		}
		example := s.Name + "=" + cmp.Or(about.Example, s.Example)
		if inFile {
			example = s.Name + FileSuffix + "=/etc/veneer/" + strings.ToLower(strings.TrimPrefix(s.Name, prefix))
		}
		return fmt.Errorf("%w; for example %s", err, example)
	}
	return err
}
