package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// painter takes its time.
type painter struct {
	time.Duration
	begun func()
}

func (p painter) Render(skin.Sheet, render.View) ([]byte, render.Took, error) {
	p.begun()
	<-time.After(p.Duration)
	return nil, render.Took{}, nil
}
func (painter) Revision() string { return "" }
func (painter) CanWebP() bool    { return false }

// There is room before anything is drawn, however long that takes, and until a while
// after the last picture. At the end nobody waits for it.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		const long, toWiden = 10*roomKept + roomKept/10, roomKept / 4
		start := time.Now()
		var happened []string
		note := func(what string) { happened = append(happened, what+" at "+time.Since(start).String()) }
		r := newRoom(painter{long, func() { note("drawn") }})
		var watched bool
		go func() {
			r.watch(ctx, func() { <-time.After(toWiden); note("widened") }, func() { note("narrowed") })
			watched = true
		}()
		draw := func() {
			if _, _, err := r.Render(skin.Sheet{}, render.View{}); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Second)
		draw()
		draw()
		<-time.After(time.Second)
		draw()
		<-time.After(time.Second)
		end()
		synctest.Wait()
		draw()
		if !watched {
			t.Error("room is still made after the end")
		}
		want := []string{
			"widened at 1.025s", "drawn at 1.025s", "drawn at 2.035s", "narrowed at 3.225s",
			"widened at 4.07s", "drawn at 4.07s", "narrowed at 5.27s",
			"drawn at 6.08s",
		}
		if diff := cmp.Diff(want, happened); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}
