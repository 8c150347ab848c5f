package render

import (
	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
)

// Picture is a drawn picture.
type Picture = raster.Picture

// Pose is how the arms and legs of a figure are.
type Pose = model.Pose

// The poses.
const (
	Stand = model.Stand
	Walk  = model.Walk
	Wave  = model.Wave
	Sit   = model.Sit
	Sneak = model.Sneak

	PoseCount = model.PoseCount
)

// Wear is what a figure wears on its back.
type Wear = model.Wear

// What can be worn.
const (
	WearNothing = model.WearNothing
	WearCape    = model.WearCape
	WearElytra  = model.WearElytra
)

// Omissions are what a picture leaves out, a bit set.
type Omissions = model.Omissions

// The omissions.
const (
	OmitHat    = model.OmitHat
	OmitLayers = model.OmitLayers
	OmitLight  = model.OmitLight
)
