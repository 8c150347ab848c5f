package fastpath

// Parse is Context.parse.
func (c *Context) Parse(in []byte) int { return c.parse(in) }

// IsSampled is isSampled.
func IsSampled(traceparent []byte) bool { return isSampled(traceparent) }
