package main

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/config/configtest"
)

// A search for the name of a setting finds the code that declares it.
func TestSettingsAreNamedInSource(t *testing.T) {
	t.Parallel()
	configtest.NamesInSource[settings](t, prefix, "github.com/veneer-skins/veneer/edge", "../..")
}
