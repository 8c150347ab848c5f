package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// MappingStore knows what keys lead to.
type MappingStore interface {
	// Mappings returns what keys lead to, in their order, all read in one snapshot,
	// with that snapshot's position. A key it cannot make sense of leads nowhere.
	Mappings(ctx context.Context, keys []mapping.Key) (mapping.Answer, error)
}

// Mappings answers what edges ask.
type Mappings struct {
	store MappingStore
}

// NewMappings returns the mappings of a store.
func NewMappings(store MappingStore) *Mappings { return &Mappings{store: store} }

// Answer returns what the keys lead to. More than mapping.MaxKeys are an Invalid
// fault.
func (m *Mappings) Answer(ctx context.Context, question mapping.Question) (mapping.Answer, error) {
	if n := len(question.Keys); n > mapping.MaxKeys {
		return mapping.Answer{}, fault.Field("keys", "%d keys are too many: at most %d can be asked for at once.", n, mapping.MaxKeys)
	}
	return m.store.Mappings(ctx, question.Keys)
}
