package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kurabe/internal/proc"
)

// A start takes some milliseconds, and so does the end of one that was disarmed.
const (
	ensureTime  = 15 * time.Second
	ensurePause = 5 * time.Millisecond
)

// Ensure finds the warden of a folder, or starts one, and returns once it answers. One that
// guards something else, or is of another version, has become the one asked for by then,
// with the lease that it had. ErrEnded says that it is just ending its server: try again
// when it is done.
func Ensure(ctx context.Context, c Config) (*Warden, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	// As JSON gives it back, to be compared.
	if len(c.Cgroups) == 0 {
		c.Cgroups = nil
	}
	if len(c.Joins) == 0 {
		c.Joins = nil
	}
	ctx, cancel := context.WithTimeout(ctx, ensureTime)
	defer cancel()
	for {
		w, err := find(ctx, c)
		var no *refused
		if w != nil || errors.Is(err, ErrEnded) || errors.As(err, &no) {
			return w, err
		}
		if !running(c) {
			err = start(ctx, c)
			var held *proc.LockHeldError
			if err != nil && !errors.As(err, &held) {
				return nil, fmt.Errorf("ensure warden: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("ensure warden: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(ensurePause):
		}
	}
}

// Find finds the warden of a folder, nil when there is none. One that does not answer is an
// error.
func Find(ctx context.Context, c Config) (*Warden, error) {
	if !running(c) {
		return nil, nil
	}
	return Ensure(ctx, c)
}

func running(c Config) bool {
	p, found, err := proc.Find(c.file(recordName))
	return err == nil && found && p.Alive()
}

// find gives nil without an error for one that is not there, or not yet.
func find(ctx context.Context, c Config) (*Warden, error) {
	process, found, err := proc.Find(c.file(recordName))
	if err != nil || !found {
		return nil, err
	}
	w := &Warden{config: c, process: process}
	a, err := w.ask(ctx, request{Op: opHello})
	if err == nil && a.Ended {
		w.Close()
		return nil, ErrEnded
	}
	if err == nil && a.speaks(c) && a.PID == process.PID {
		return w, nil
	}
	defer w.Close()
	if err == nil && !a.speaks(c) {
		// It answers only when it does not do it: an exec closes the connection.
		_, err = w.ask(ctx, request{Op: opSucceed, Config: &c})
		var no *refused
		if !errors.As(err, &no) {
			err = nil
		}
	}
	return nil, err
}

// start makes a new one. That another one starts or ends meanwhile is a *LockHeldError.
func start(ctx context.Context, c Config) error {
	spec, err := c.spec()
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.Dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", c.Dir)
	}
	_, err = proc.Start(ctx, spec)
	return err
}
