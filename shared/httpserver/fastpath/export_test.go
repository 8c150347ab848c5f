package fastpath

// Parse exports parse.
func (c *Context) Parse(in []byte) int { return c.parse(in) }

// IsSampled exports isSampled.
func IsSampled(traceparent []byte) bool { return isSampled(traceparent) }
