package engine

import (
	"context"
	"errors"
	"fmt"
	"os"

	"kurabe/internal/cgroup"
)

// setLimits makes the control group true of the assignment. It is made even
// when nothing is limited, so that usage can be read and leftovers found.
func (l *Lifecycle) setLimits(i Instance) error {
	want := cgroup.Limits{
		CPUQuota: i.Limits.CPUs, MemoryBytes: i.Limits.MemoryBytes,
		ReadIOPS: i.Limits.ReadIOPS, WriteIOPS: i.Limits.WriteIOPS,
		ReadBytesPerSecond: i.Limits.ReadBytesPerSecond, WriteBytesPerSecond: i.Limits.WriteBytesPerSecond,
	}
	if want.ReadIOPS|want.WriteIOPS|want.ReadBytesPerSecond|want.WriteBytesPerSecond != 0 {
		device, err := cgroup.DeviceOf(i.Home.Dir)
		if err != nil {
			return fmt.Errorf("limit I/O: %w", err)
		}
		want.Device = device
	}
	if _, err := l.c.Levers.Ensure(groupName(i.Instance), want); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	return note(i.Home, func(a *Applied) { a.Limits, a.LimitsSet = i.Limits, true })
}

// removeLimits removes the control group; its processes have ended.
func (l *Lifecycle) removeLimits(ctx context.Context, i Instance) error {
	group, ok := l.c.Levers.Find(groupName(i.Instance))
	if !ok {
		return nil
	}
	if err := group.Remove(ctx); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove control group: %w", err)
	}
	return nil
}
