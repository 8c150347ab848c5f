package core

import "context"

// RunOnce does what Run does time and again.
func (p *CDNPurger) RunOnce(ctx context.Context) error { return p.runOnce(ctx) }

// Drain does what Run does time and again.
func (o *Outbox) Drain(ctx context.Context) (int, error) { return o.drain(ctx) }

// SendBatch sends some mails.
func (o *Outbox) SendBatch(ctx context.Context) (int, error) { return o.sendBatch(ctx) }
