package main

import "testing"

func TestEncoderText(t *testing.T) {
	t.Parallel()
	for _, want := range []encoder{native, libvips} {
		var got encoder
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%s: parsed as %s, %v", want, got, err)
		}
	}
	if err := new(encoder).UnmarshalText([]byte("vips")); err == nil {
		t.Error("vips is an encoder")
	}
}
