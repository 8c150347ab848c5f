// Package raster projects figures of package model and paints them.
//
// Figures are scanned along vertical lines, on which every border between texels is found exactly
// (columnScan). What does not depend on the colours of a sheet is the same for all textures, so it is
// computed once: mostly as a SampleMap, which says what texels each pixel shows, so that painting a
// texture is a look-up of colours. Large smooth pictures of sheets of high scale are scanned anew for
// every texture (scannedFigures).
//
// Boxes that are moved alike are a group. In a group faces are cut until one of two is nearer wherever
// they overlap. Faces of different groups cross: as how near a face is to the viewer is an affine
// function of the picture, two cross at most once on a line, and are cut there (columnScan.split).
// Borders between texels of rotated boxes are slanted across and down, which takes twice as many lines
// for the same precision.
//
// Anti-aliasing. A pixel covers a square. Where texels are at least four pixels wide, a picture
// is crisp: a pixel shows what is at its centre. Only at the outline, before nothing, is it
// mixed: its alpha is the average over its square, in eighteen steps, and its colour the one
// with the greatest share. Where a body part or a layer ends before another one, like the rim
// of a hat before the body, the edge stays as hard as between two texels: mixed colours would
// look soft beside hard texels and enlarge the palette. In all other pictures, the smooth ones,
// each pixel is the average of its square.
package raster

import (
	"slices"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Scene is the content of a picture: figures beside each other, drawn to one scale.
type Scene struct {
	Width, Height int     // of the picture, in pixels
	Scale         float64 // pixels to a unit
	Figures       []Figure
}

// Scales are the scales of a skin's sheet and of a worn one, 0 without.
type Scales struct{ Skin, Worn int }

// Finest is the greater one.
func (s Scales) Finest() int { return max(s.Skin, s.Worn) }

// Figure is body parts and what is worn, with the camera and the viewport that show them.
type Figure struct {
	Camera   Camera
	Parts    []model.BodyPart
	Model    skin.Type
	Worn     []model.WornBox
	Viewport Viewport
}

// Crisp reports whether the texels of a sheet of scale k are large enough, at four pixels, to
// be drawn with hard edges. Rows and columns of smaller ones would visibly differ in size.
func (s Scene) Crisp(k int) bool { return s.Scale >= float64(4*k) }

// quads returns what can be visible of the figure, sorted for a scan. The group of the body is the
// first, so that limbs are in front of it where they lie in one plane.
func (f Figure) quads(k Scales) []quad {
	var quads []quad
	group := 0
	add := func(m model.Motion, pieces []piece, k, number int) {
		c, view := f.Camera.seenFrom(m), f.Viewport.moved(f.Camera, m.By)
		for _, p := range pieces {
			q := c.project(p, view, k, number)
			q.group = group
			quads = append(quads, q)
		}
		group++
	}
	var motions []model.Motion
	for i := range f.Parts {
		m := f.Parts[(model.Torso+i)%len(f.Parts)].Motion
		if slices.Contains(motions, m) {
			continue
		}
		motions = append(motions, m)
		var alike []model.BodyPart
		for _, part := range f.Parts {
			if part.Motion == m {
				alike = append(alike, part)
			}
		}
		add(m, f.Camera.seenFrom(m).pieces(alike, f.Model), k.Skin, 0)
	}
	for _, worn := range f.Worn {
		add(worn.Motion, f.Camera.seenFrom(worn.Motion).wornPieces(worn), k.Worn, SheetColumns*SheetColumns*k.Skin*k.Skin)
	}
	return sortByStart(quads)
}
