package render

import (
	"github.com/veneer-skins/veneer/edge/render/raster"
)

// For tests.
const (
	CurrentRevision = revision
	AttitudeCount   = attitudeCount
	ExactPlatform   = raster.Platform == "amd64"
)
