package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Poll intervals for conditions that nothing announces: 5 ms at first, so that a
// fast start is seen at once, growing to a quarter of a second.
const (
	pollFirst = 5 * time.Millisecond
	pollMost  = 250 * time.Millisecond
)

// nofile is the limit of open files, enough for the classes offered.
const nofile = 65536

// ErrEnded says that a process ended before it was ready.
var ErrEnded = errors.New("the process ended")

// Daemon names the files of one process. Paths are absolute. Lock, Record and Log belong
// in a folder that the process's user cannot write.
type Daemon struct {
	Work   string // the process and its children work here
	Lock   string // locked as long as any process of the tree lives
	Record string // names the process: pid, start time, boot
	Log    string // takes standard output and error
	// Seen is the path at which the process sees the folder From; From itself, or "",
	// where nothing bars its user from that.
	Seen, From string
}

// Start starts the process; it does not wait until it is ready. Of spec the caller fills
// in what is run and as whom.
func (d Daemon) Start(ctx context.Context, spec proc.Spec) (proc.Process, error) {
	spec.Dir, spec.LockFile, spec.RecordFile, spec.StdoutStderr = d.Work, d.Lock, d.Record, d.Log
	spec.Nofile = nofile
	if d.Seen != d.From {
		spec.BindAs, spec.BindFrom = d.Seen, d.From
	}
	return proc.Start(ctx, spec)
}

// Find returns the recorded process and whether it lives, whoever started it.
func (d Daemon) Find() (proc.Process, bool, error) { return proc.Find(d.Record) }

// Await waits until the process meets a condition. ErrEnded says that it ended before; an
// error of met is final.
func Await(ctx context.Context, p proc.Process, met func() (bool, error)) error {
	for wait := pollFirst; p.Alive(); wait = min(wait*5/4, pollMost) {
		done, err := met()
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && p.Alive():
			return err
		}
		pause, cancel := context.WithTimeout(ctx, wait)
		_ = p.Wait(pause) // returns at once when the process ends
		cancel()
	}
	return ErrEnded
}

// Stop asks the process to end and waits for that as long as ctx allows. asked is false
// where it had ended by itself. The record stays, and so may children.
func (d Daemon) Stop(ctx context.Context, sig syscall.Signal) (p proc.Process, asked bool, err error) {
	p, alive, err := d.Find()
	if err != nil || !alive {
		return p, false, err
	}
	err = p.Signal(sig)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p, false, err
	}
	return p, err == nil, p.Wait(ctx)
}

// Kill asks the process to end at once, kills it after the grace, and ends what is left of
// its tree: by rest, or, if that is nil, whatever works where it worked. The record stays.
func (d Daemon) Kill(ctx context.Context, sig syscall.Signal, grace time.Duration, rest func(context.Context) error) error {
	p, alive, err := d.Find()
	if err != nil {
		return err
	}
	if alive {
		if err := p.Signal(sig); err != nil && p.Alive() {
			return err
		}
		short, cancel := context.WithTimeout(ctx, grace)
		waited := p.Wait(short)
		cancel()
		if waited != nil {
			if err := p.Signal(syscall.SIGKILL); err != nil && p.Alive() {
				return err
			}
		}
	}
	// The first process does not take the others along when it is killed.
	if rest != nil {
		err = rest(ctx)
	} else if err = proc.KillSurvivors(ctx, d.Work); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Quiet waits until no process of the tree lives, as long as ctx allows.
func (d Daemon) Quiet(ctx context.Context) {
	for {
		if held, err := proc.LockHeld(d.Lock); err != nil || !held || ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(pollFirst)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Forget removes the record: the end of the process was wanted, or has been told.
func (d Daemon) Forget() error {
	if err := volume.Remove(d.Record); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget the ended process: %w", err)
	}
	return volume.SyncDir(filepath.Dir(d.Record))
}
