package core

import "context"

// Round does what Run does time and again.
func (p *Purges) Round(ctx context.Context) error { return p.round(ctx) }

// Drain does what Run does time and again.
func (o *Outbox) Drain(ctx context.Context) (int, error) { return o.drain(ctx) }

// Round sends some mails.
func (o *Outbox) Round(ctx context.Context) (int, error) { return o.round(ctx) }
