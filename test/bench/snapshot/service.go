package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"golang.org/x/sys/unix"

	"kurabe/test/bench/bed"
)

// xfs is the file system that clones.
const xfs = "xfs"

// errNoXFS says why there is no file system that clones.
var errNoXFS = errors.New("a loop-mounted XFS needs root and mkfs.xfs (package xfsprogs)")

// snapshotLab is a service of its own, with one filled instance, on one file system.
type snapshotLab struct {
	*bed.Lab
	mounted, image string // "" on the ordinary file system
	device         string // of the image
	pace           int    // MiB/s that the service copies at
	i              *bed.Instance
	rows           int
	serial         int
	taken          string // the snapshot that is there, and where a copy by hand is
	hand           string
}

// openSnapshotLab starts a service below the folder of the bench, or on a new file
// system in a sparse image there, and fills an instance. Without the engine i is nil.
func openSnapshotLab(ctx context.Context, r *bed.Run, fs, engine string, size float64) (*snapshotLab, error) {
	parent, pattern := r.Dir, "kurabe-bench-"
	s := &snapshotLab{pace: snapshotPaceMiB}
	if fs == xfs {
		if err := s.mount(ctx, parent, size); err != nil {
			return s, err
		}
		// Short: below it is the path of a socket, which has 107 bytes at most.
		parent, pattern = s.mounted, ""
	}
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return s, err
	}
	var random [20]byte
	rand.Read(random[:]) // never fails
	s.Lab = &bed.Lab{Dir: dir, Data: filepath.Join(dir, "data"), Bin: filepath.Join(dir, "launch"), Secret: hex.EncodeToString(random[:]), Keep: r.Keep, Out: r.Out}
	s.hand = filepath.Join(dir, "by-hand")
	// The lab starts a program with its own arguments; this one adds the pace.
	launch := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" --copy-rate \"$(cat '%s')\"\n", r.Bin, s.paceFile())
	if err := errors.Join(os.Chmod(dir, 0o711), os.WriteFile(s.Bin, []byte(launch), 0o755), s.writePace()); err != nil {
		return s, err
	}
	if _, err := s.Start(ctx); err != nil {
		return s, err
	}
	if err := s.FindEngines(ctx); err != nil || s.Engines[engine] == "" {
		return s, err
	}
	return s, s.fill(ctx, r, engine, size)
}

// fill makes the instance and its data.
func (s *snapshotLab) fill(ctx context.Context, r *bed.Run, engine string, size float64) error {
	o := bed.Order{Name: "source", Engine: engine, Class: s.WholeClass(runtime.NumCPU()), Gib: int32(20 + 4*size)}
	in := o.Input()
	in.BackupRetentionPeriod = aws.Int32(0) // no snapshot but those that are measured
	if _, err := s.Api.CreateDBInstance(ctx, in); err != nil {
		return err
	}
	var err error
	if s.i, err = s.WaitStatus(ctx, o.Name, "available"); err != nil {
		return err
	}
	r.Out.Say("  filling %g GB of %s in %s", size, engine, s.Dir)
	if s.rows, err = fillRows(ctx, s.i.Target, size); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if engine == bed.Postgres {
		err = s.i.Exec(ctx, "VACUUM (FREEZE, ANALYZE) kept")
	}
	return err
}

// mount makes a file system that clones.
func (s *snapshotLab) mount(ctx context.Context, parent string, size float64) error {
	tool, err := exec.LookPath("mkfs.xfs")
	if err != nil || os.Getuid() != 0 {
		return errNoXFS
	}
	dir, err := os.MkdirTemp(parent, "kurabe-xfs-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	s.image, s.mounted = dir+".image", dir
	// Sparse: the data, its log, and what ten snapshots and the load between own.
	f, err := os.Create(s.image)
	if err == nil {
		err = errors.Join(f.Truncate(int64((3*size+8)*1e9)), f.Close())
	}
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, tool, "-q", "-m", "reflink=1", s.image).CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.xfs: %w: %s", err, out)
	}
	// As the service's own pool: otherwise each block is in the page cache twice, and a
	// sync writes out what others have left there.
	out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", "--direct-io=on", s.image).Output()
	if err != nil {
		return fmt.Errorf("losetup: %w", err)
	}
	s.device = strings.TrimSpace(string(out))
	if out, err := exec.CommandContext(ctx, "mount", s.device, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	return os.Chmod(dir, 0o711)
}

// close ends the service and what is on it; it may have been opened by half.
func (s *snapshotLab) close() error {
	if s == nil {
		return nil
	}
	var err error
	if s.Lab != nil {
		err = s.Lab.Close()
		if s.Keep {
			return err
		}
	}
	if s.mounted != "" {
		_ = unix.Unmount(s.mounted, 0) // it may not have been mounted yet; the next line says so
		if s.device != "" {
			_ = exec.Command("losetup", "--detach", s.device).Run()
		}
		err = errors.Join(err, os.Remove(s.mounted), os.Remove(s.image))
	}
	return err
}

func (s *snapshotLab) paceFile() string { return filepath.Join(s.Dir, "pace") }

func (s *snapshotLab) writePace() error {
	return os.WriteFile(s.paceFile(), []byte(strconv.Itoa(s.pace)), 0o600)
}

// prepare brings server and service to where a trial begins.
func (s *snapshotLab) prepare(ctx context.Context, a *snapshotArm) error {
	if a.pace >= 0 && a.pace != s.pace {
		s.pace = a.pace
		if err := errors.Join(s.writePace(), s.Stop()); err != nil {
			return err
		}
		if _, err := s.Start(ctx); err != nil {
			return err
		}
		if _, err := s.WaitStatus(ctx, s.i.Name, "available"); err != nil {
			return err
		}
	}
	return bed.Settle(ctx, s.i.Target, s.Home(s.i))
}

// snapshotPoll is how often a status is asked for at first: a clone takes tenths of
// seconds. A copy that takes longer is asked for a hundredth of its time, because each
// question takes processor time from the clients that are measured.
const snapshotPoll = 10 * time.Millisecond

// takeSnapshot takes one through the API and returns when it is available.
func (s *snapshotLab) takeSnapshot(ctx context.Context) error {
	s.serial++
	return s.takeNamed(ctx, fmt.Sprintf("bench-%d", s.serial))
}

// takeNamed takes a snapshot of that name and returns when it is available.
func (s *snapshotLab) takeNamed(ctx context.Context, name string) error {
	if _, err := s.Api.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(s.i.Name), DBSnapshotIdentifier: aws.String(name)}); err != nil {
		return err
	}
	s.taken = name
	for began := time.Now(); ; {
		out, err := s.Api.DescribeDBSnapshots(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
		if err != nil {
			return err
		}
		switch state := aws.ToString(out.DBSnapshots[0].Status); state {
		case "available":
			return nil
		case "failed":
			return fmt.Errorf("snapshot %s failed: %s", name, s.LogTail())
		}
		select {
		case <-time.After(max(snapshotPoll, time.Since(began)/100)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// removeSnapshot removes the newest snapshot and waits until it is gone.
func (s *snapshotLab) removeSnapshot(ctx context.Context) error {
	if s.taken == "" {
		return nil
	}
	name := s.taken
	s.taken = ""
	return s.removeNamed(ctx, name)
}

func (s *snapshotLab) removeNamed(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bed.GoneTime)
	defer cancel()
	_, err := s.Api.DeleteDBSnapshot(ctx, &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)})
	for err == nil {
		_ = bed.Wait(ctx, bed.PollPause)
		_, err = s.Api.DescribeDBSnapshots(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
	}
	if bed.ErrorCode(err) == "DBSnapshotNotFound" {
		return nil
	}
	return fmt.Errorf("delete snapshot %s: %w", name, err)
}

func (s *snapshotLab) removeHand(context.Context) error { return os.RemoveAll(s.hand) }
