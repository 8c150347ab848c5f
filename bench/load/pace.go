package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pace sends so many moments at a constant rate, each when it has come; later if
// nobody takes it, but it stays that moment. They come from a timer of the
// kernel's because Go's own, when nothing else is to be done, sleep in whole
// milliseconds: longer than most answers take.
func pace(ctx context.Context, due chan<- time.Time, rate float64, moments int) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make a timer: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timer")
	defer func() { _ = timer.Close() }()
	defer context.AfterFunc(ctx, func() { _ = timer.SetReadDeadline(time.Unix(1, 0)) })()

	distance := time.Duration(float64(time.Second) / rate)
	moment := time.Now()
	tick := unix.NsecToTimespec(int64(distance))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: tick, Value: tick}, nil); err != nil {
		return fmt.Errorf("start a timer: %w", err)
	}
	for moments > 0 {
		var ticks [8]byte
		if _, err := timer.Read(ticks[:]); err != nil {
			return fmt.Errorf("read a timer: %w", err)
		}
		for range min(moments, int(binary.NativeEndian.Uint64(ticks[:]))) {
			moment = moment.Add(distance)
			moments--
			select {
			case due <- moment:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
