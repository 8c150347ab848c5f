package render

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/edge/render/raster"
)

// Reducer reduces pictures to sizes in which they are not drawn. It is called concurrently.
type Reducer interface {
	// Reduce returns the picture in a smaller width and height. It is of the model in space, or flat.
	// Pixels of alpha 0 are black in the result.
	Reduce(picture raster.Picture, width, height int, inSpace bool) (raster.Picture, error)

	// Revision returns a token that differs whenever the same picture could be reduced to another one.
	Revision() string

	// Cost returns about how long Reduce takes for a picture of a number of pixels on one core of the
	// reference machine.
	Cost(pixels int) time.Duration
}

// ExactOf returns how a picture of exactly a requested size is made: exact is that size, at least 8
// pixels and at most the largest one that is drawn, and size the next larger one in which the picture is
// crisp, from which it is reduced. If the requested size is one of those that are drawn, exact is 0, and in a mode
// without exact sizes too.
func (m Mode) ExactOf(requested int) (size, exact int) {
	s, step := m.row().sizes, m.row().exactStep
	exact = min(max(requested, minExact), s.max)
	switch {
	case step == 0:
		return s.round(exact), 0
	case exact == s.round(exact):
		return exact, 0
	}
	s.step = step
	return s.round(exact), exact
}

// minExact is the least exact size in pixels.
const minExact = 8

// checkExact reports whether the view has sizes that ExactOf returns.
func (v View) checkExact() bool {
	if v.Exact == 0 {
		return true
	}
	size, exact := v.Mode.ExactOf(v.Exact)
	return v.Size == size && v.Exact == exact
}

// reduce returns a drawn picture in the exact size of the view, if it has one and is not drawn smaller.
func (r *Renderer) reduce(picture raster.Picture, view View) (raster.Picture, error) {
	if view.Exact == 0 || view.Exact >= picture.Height {
		return picture, nil
	}
	if r.reducer == nil {
		return raster.Picture{}, errors.New("this renderer has no exact sizes")
	}
	width, height := view.widthAt(view.Exact), view.Exact
	reduced, err := r.reducer.Reduce(picture, width, height, view.Mode.InSpace())
	if err != nil {
		return raster.Picture{}, fmt.Errorf("reduce to %d × %d pixels: %w", width, height, err)
	}
	return reduced, nil
}

// RevisionOf returns the revision of the pictures of a view. Exact sizes depend on the reducer as well.
func (r *Renderer) RevisionOf(view View) string {
	if view.Exact != 0 {
		return r.exactRevision
	}
	return r.revision
}

// digestOf returns a token of 12 lower-case hexadecimal digits for a text.
func digestOf(format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return fmt.Sprintf("%x", sum[:6])
}
