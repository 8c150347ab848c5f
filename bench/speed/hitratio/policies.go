package main

import (
	"container/list"
	"slices"
)

// simulateLRU returns the hits of an exact LRU.
func simulateLRU(trace []uint32, views int, cost func(view int) int64, budget int64) (hits int) {
	order, elements := list.New(), make([]*list.Element, views)
	for _, view := range trace {
		if element := elements[view]; element != nil {
			hits++
			order.MoveToFront(element)
			continue
		}
		elements[view] = order.PushFront(view)
		for budget -= cost(int(view)); budget < 0; {
			oldest, _ := order.Remove(order.Back()).(uint32)
			elements[oldest] = nil
			budget += cost(int(oldest))
		}
	}
	return hits
}

// simulateStatic returns the hits of the views that are requested most for each byte, cached from
// the beginning.
func simulateStatic(trace []uint32, views int, cost func(view int) int64, budget int64) (hits int) {
	type candidate struct {
		requests int
		cost     int64
	}
	all := make([]candidate, views)
	for view := range all {
		all[view].cost = cost(view)
	}
	for _, view := range trace {
		all[view].requests++
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return int(int64(b.requests)*a.cost - int64(a.requests)*b.cost)
	})
	for _, c := range all {
		if c.cost <= budget {
			budget -= c.cost
			hits += c.requests
		}
	}
	return hits
}
