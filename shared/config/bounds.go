package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkBounds returns an error if a value is not one that the tags min, above, max or oneof of
// the setting allow.
func (s Setting) checkBounds(value reflect.Value) error {
	tag, quoted := s.field.Tag, fmt.Sprint(value)
	if values := tag.Get("oneof"); values != "" {
		if slices.Contains(strings.Split(values, ","), quoted) {
			return nil
		}
		if value.Kind() == reflect.String {
			quoted = fmt.Sprintf("%.100q", quoted)
		}
		return Errorf(s.Name, "is %s, but must be %s", quoted, s.Allowed)
	}
	for _, bound := range []struct {
		tag     string
		allowed func(value, bound float64) bool
	}{
		{"min", func(value, bound float64) bool { return value >= bound }},
		{"above", func(value, bound float64) bool { return value > bound }},
		{"max", func(value, bound float64) bool { return value <= bound }},
	} {
		text, ok := tag.Lookup(bound.tag)
		if !ok {
			continue
		}
		// Bounds and most values are far below 2^53, up to which a float64 has all whole numbers.
		limit, err := strconv.ParseFloat(text, 64)
		if s.field.Type == reflect.TypeFor[time.Duration]() {
			var duration time.Duration
			duration, err = time.ParseDuration(text)
			limit = float64(duration)
		}
		if err != nil {
			return fmt.Errorf("BUG: the tag %s of %s is no number of its type: %w", bound.tag, s.Name, err)
		}
		if !bound.allowed(value.Convert(reflect.TypeFor[float64]()).Float(), limit) {
			return Errorf(s.Name, "is %s, but must be %s", quoted, s.Allowed)
		}
	}
	return nil
}

// describeBounds says which values a setting allows, in words; empty if its type says it all.
func describeBounds(tag reflect.StructTag) string {
	smallest, above, largest, values := tag.Get("min"), tag.Get("above"), tag.Get("max"), tag.Get("oneof")
	switch {
	case values != "":
		last := strings.LastIndexByte(values, ',')
		return strings.ReplaceAll(values[:last], ",", ", ") + " or " + values[last+1:]
	case smallest != "" && largest != "":
		return smallest + " to " + largest
	case smallest == "0" || smallest == "0s":
		return smallest + " or more"
	case smallest != "":
		return "at least " + smallest
	case above != "":
		return "more than " + above
	case largest != "":
		return "at most " + largest
	default:
		return ""
	}
}
