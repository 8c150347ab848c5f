package core

import "context"

// Drain does one iteration of Run.
func (o *Outbox) Drain(ctx context.Context) (int, error) { return o.drain(ctx) }

// SendBatch sends some mails.
func (o *Outbox) SendBatch(ctx context.Context) (int, error) { return o.sendBatch(ctx) }
