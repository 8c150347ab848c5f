package sample

import "testing"

func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()

	s := New(func(int) string { return "/" }, mostKept/10) // so each thread keeps ten bytes
	for _, body := range []string{"123456", "123456", "12345", "1234"} {
		if err := s.Look(0, 200, []byte(body)); err != nil {
			t.Error(err)
		}
	}
	if len(s.kept) != 2 || s.leftOut != 1 || s.room != 0 {
		t.Errorf("%d bodies are kept, %d left out, with room for %d bytes; want 2, 1, 0", len(s.kept), s.leftOut, s.room)
	}
}
