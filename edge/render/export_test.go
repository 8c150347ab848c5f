package render

// For tests.
const (
	CurrentRevision = revision
	AttitudeCount   = attitudeCount
	ExactPlatform   = platform == "amd64"
)
