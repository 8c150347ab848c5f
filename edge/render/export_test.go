package render

// For tests.
const (
	CurrentRevision = revision
	ExactPlatform   = platform == "amd64"
)
