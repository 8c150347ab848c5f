package picturecheck

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(func(int) string { return "/" })
	s.budget = 10
	for _, body := range []string{"123456", "123456", "12345", "1234"} {
		testenv.Do(t, s.Inspect(0, 200, []byte(body)))
	}
	if len(s.pictures) != 2 || s.skipped != 1 || s.budget != 0 {
		t.Errorf("%d bodies are stored, %d skipped, with %d bytes of the budget left; want 2, 1, 0", len(s.pictures), s.skipped, s.budget)
	}
}
