package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/daemon"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// maxLogTail is how much of an error log is read for the engine's last words.
const maxLogTail = 16 << 10

// start starts the server; it does not wait until it is ready.
func (l *Lifecycle) start(ctx context.Context, i Instance) error {
	if err := l.fits(i); err != nil {
		return err
	}
	command := l.c.Driver.Command(i)
	spec := proc.Spec{
		Name: string(i.Engine) + " " + i.Name, Argv: command.Argv, Env: command.Env, User: i.User, OOMScoreAdj: command.OOMScoreAdj,
		Tags: map[string]string{bootTag: strconv.FormatInt(i.Boot, 10), versionTag: i.Version.Version},
	}
	if group, ok := l.c.Levers.Find(groupName(i.Instance)); ok {
		spec.Cgroups = group.ProcsFiles()
	}
	// What is on disk now is what the server will read: the note is written
	// first, so a death in between costs a reload, never a missing one.
	if err := volume.Truncate(i.Home.StartLog(), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("start %s: %w", i.Engine, err)
	}
	applied, err := readApplied(i.Home)
	if err != nil {
		return err
	}
	i.Fresh = i.Origin != nil && !applied.Master
	for _, p := range l.c.Driver.Preparations() {
		more, err := p.Do(ctx, i)
		if err != nil {
			return fmt.Errorf("start %s: %s: %w", i.Engine, p.What, err)
		}
		spec.Argv = append(spec.Argv, more...)
	}
	forget, err := l.beginInGroup(&i)
	if err != nil {
		return fmt.Errorf("start %s: %w", i.Engine, err)
	}
	server := i.Home.Daemon()
	server.Seen = i.SeenDir
	p, err := server.Start(ctx, spec)
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", i.Engine, err), forget())
	}
	loaded := fingerprint(l.c.Driver.Render(i), i.Home)
	err = note(i.Home, func(a *Applied) {
		a.Ran(identity(p), loaded)
		a.obeys(i.Role) // it began with all that a follower has to know
	})
	return errors.Join(err, forgetWaits(i))
}

// fits refuses a server whose settings would take more than the instance has, before it has
// taken anything: a file of the wanted size on the host's disk harms its neighbours as well.
// The API has refused them; storage or class can have been others then.
func (l *Lifecycle) fits(i Instance) error {
	any := func(name string) bool { _, set := i.Settings[name]; return set }
	e := l.c.Driver.Demands().Excess(i.Settings, any, kurabe.Sizes{MemoryBytes: i.Limits.MemoryBytes, StorageBytes: i.Limits.StorageBytes})
	if e == nil {
		return nil
	}
	return &StartError{Kind: kurabe.FailureParameters, Message: e.Error()}
}

// waitReady waits until the server accepts statements, or has ended.
func (l *Lifecycle) waitReady(ctx context.Context, i Instance) error {
	p, _, err := i.Home.Daemon().Find()
	if err != nil {
		return err
	}
	err = daemon.Await(ctx, p, func() (bool, error) {
		err := l.c.Driver.Ready(ctx, i)
		if errors.Is(err, ErrNotReady) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, daemon.ErrEnded) {
		return l.startFailed(ctx, i)
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", i.Engine, err)
	}
	return note(i.Home, func(a *Applied) {
		if a.Process != identity(p) {
			// The note of the start was lost with the service: what this server
			// has loaded is not known, so it is told to load it again.
			a.Ran(identity(p), "")
		}
		a.Ready, a.Accepted = true, sumOf(i)
		if i.Origin != nil && !a.Master {
			a.Accepted = acceptedMore
		}
	})
}

// startFailed removes the record of a server that never came up, so that it does
// not count as a crash, and says why in the engine's words.
func (l *Lifecycle) startFailed(ctx context.Context, i Instance) error {
	quiet, cancel := context.WithTimeout(ctx, lastWords)
	i.Home.Daemon().Quiet(quiet)
	cancel()
	kind, message := l.c.Driver.StartFailure(l.logTail(i))
	if applied, err := readApplied(i.Home); err == nil && kind == kurabe.FailureOther && refusesNews(i, applied, message) {
		kind = kurabe.FailureParameters
	}
	if err := i.Home.Daemon().Forget(); err != nil {
		return err
	}
	if m, ok := l.c.Driver.(Mender); ok {
		if err := m.AfterFailedStart(i, message); err != nil {
			return errors.Join(&StartError{Kind: kind, Message: message}, err)
		}
	}
	return &StartError{Kind: kind, Message: message}
}

// killed are the words of a server that did not end by itself.
var killed = regexp.MustCompile(`terminated by signal|got signal|Assertion failure`)

// refusesNews says whether a server that ended before it was ready did so for its settings: it
// ended by itself and with a word on it, and what differs from its last start, or from the
// template that it is made of, is what it was to run with. No list of its words would know all
// that an engine can say against a setting.
func refusesNews(i Instance, a Applied, message string) bool {
	if message == NoReason || killed.MatchString(message) {
		return false
	}
	if a.Accepted == "" {
		return i.Origin == nil && i.Role == nil && !a.Master // made of the template, and never come up
	}
	return a.Accepted != sumOf(i)
}

// acceptedMore is Accepted of a server that was started with more than its own settings say
// (Preparation): whether it comes up with those alone its next start shows.
const acceptedMore = "more"

// sumOf is a sum of what a server is to run with.
func sumOf(i Instance) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(i.Settings)) {
		fmt.Fprintf(h, "%q=%q\n", name, i.Settings[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// lastWords is how long the rest of a process tree may take to write down why its
// first process ended: PostgreSQL's log has a process of its own.
const lastWords = 2 * time.Second

// logTail is the end of the start log and of the newest error log.
func (l *Lifecycle) logTail(i Instance) string {
	var names []string
	entries, _ := volume.ReadDir(i.Home.LogDir())
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return Tail(i.Home.StartLog(), maxLogTail) + "\n" + Tail(l.c.Driver.ErrorLog(i, names), maxLogTail)
}

// Tail is the end of a log, at most so many bytes; of one that cannot be read, nothing.
func Tail(path string, bytes int64) string {
	f, err := volume.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > bytes {
		f.Seek(-bytes, io.SeekEnd)
	}
	data, _ := io.ReadAll(io.LimitReader(f, bytes))
	return strings.ToValidUTF8(string(data), "?")
}

// stop ends the server cleanly, and its record: what follows is no crash.
func (l *Lifecycle) stop(ctx context.Context, i Instance) error {
	if err := l.refuseClients(ctx, i); err != nil {
		return fmt.Errorf("stop %s: %w", i.Engine, err)
	}
	return l.end(ctx, i, syscall.Signal(l.c.Driver.StopSignal()))
}

// kill ends the server at once; its data is about to be removed.
func (l *Lifecycle) kill(ctx context.Context, i Instance) error {
	if i.Role != nil {
		return l.fence(ctx, i)
	}
	return l.end(ctx, i, syscall.Signal(l.c.Driver.KillSignal()))
}

func (l *Lifecycle) end(ctx context.Context, i Instance, sig syscall.Signal) error {
	p, asked, err := i.Home.Daemon().Stop(ctx, sig)
	if err != nil {
		return fmt.Errorf("stop %s: %w", i.Engine, err)
	}
	if err := l.endSurvivors(ctx, i); err != nil {
		return err
	}
	if asked && i.Role != nil { // which kill does not come here with
		if err := noteStopped(i, p); err != nil {
			return err
		}
	}
	return i.Home.Daemon().Forget()
}

// noteCrash counts a server that ended although nobody stopped it.
func (l *Lifecycle) noteCrash(i Instance) error {
	applied, err := readApplied(i.Home)
	if err != nil {
		return err
	}
	sameBoot, err := proc.SameBoot(i.Home.RecordFile())
	if err != nil {
		return err
	}
	if applied.Ready && sameBoot && !applied.Stopped {
		_, words := l.c.Driver.StartFailure(l.logTail(i))
		if words == NoReason {
			words = ""
		}
		err = note(i.Home, func(a *Applied) { a.Crashes++; a.LastCrash, a.Ready = words, false })
		if err != nil {
			return err
		}
	}
	return i.Home.Daemon().Forget()
}

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
