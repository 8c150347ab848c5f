package render

// revision is the version of the files that NativeEncoder writes, and of the pixels that any
// encoder gets. It must change whenever the same view of the same sheet becomes another file,
// because it is part of ETags and cache tags. TestRevision says when.
const revision = 3
