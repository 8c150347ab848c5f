package core

import "context"

// Round does what Run does time and again.
func (p *Purges) Round(ctx context.Context) error { return p.round(ctx) }
