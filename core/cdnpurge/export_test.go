package cdnpurge

import "context"

// RunOnce does one iteration of Run.
func (p *Purger) RunOnce(ctx context.Context) error { return p.runOnce(ctx) }
