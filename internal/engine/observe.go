package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"kurabe"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// bootTag is the record's tag that holds the assignment's boot number, versionTag that of the
// version which the server was started with.
const (
	bootTag    = "boot"
	versionTag = "version"
)

// Observe implements Engine: it reads files and processes and asks no server.
func (l *Lifecycle) Observe(_ context.Context, a kurabe.Assignment) (Observation, error) {
	i := l.instance(a)
	h := i.Home
	// A home that was made by half is made again.
	o := Observation{Home: hasHome(i), Data: exists(h.DataDir())}
	_, o.LimitsGroup = l.c.Levers.Find(groupName(a.Instance))
	levers := l.c.Levers
	o.LimitsMissing = !o.LimitsGroup && (levers.CPU.Enforceable || levers.Memory.Enforceable || levers.IO.Enforceable)
	o.Remains = volume.Remains(h.Dir)
	if !exists(h.Dir) {
		return o, nil
	}
	o.OtherAccount = l.otherAccount(i)
	var err error
	if o.Applied, err = readApplied(h); err != nil {
		return o, err
	}
	i.ClientsKeptOut = keepsClientsOut(a, o.Applied)
	if a.Role != nil && o.Data {
		o.Follower = l.c.Driver.IsFollower(h)
	}
	if err := l.observeProcess(a.Instance, h, &o); err != nil {
		return o, err
	}
	if group, ok := l.c.Levers.Find(groupName(a.Instance)); ok {
		if kills, err := group.OOMKills(); err == nil {
			o.OOMKills = kills
		}
	}
	if a.Goal == kurabe.GoalRunning && i.Version.Version == "" {
		// No programs to render settings for: the server goes on with what it has.
		o.SettingsCurrent, o.Fingerprint = true, o.Applied.Loaded
		o.CertificateExpires, o.CertificateCurrent = l.certificate(i)
		return o, nil
	}
	if a.Goal == kurabe.GoalRunning {
		_, gid := owner(i.User)
		o.SettingsCurrent = current(h.ConfDir(), l.c.Driver.Render(i), gid)
		o.CertificateExpires, o.CertificateCurrent = l.certificate(i)
		o.Fingerprint = fingerprint(l.c.Driver.Render(i), h)
	}
	return o, nil
}

// OOMKills counts the processes that the kernel killed for the memory limit of an
// instance; false when it has none.
func (l *Lifecycle) OOMKills(id kurabe.InstanceID) (int64, bool) {
	group, ok := l.c.Levers.Find(groupName(id))
	if !ok {
		return 0, false
	}
	kills, err := group.OOMKills()
	return kills, err == nil
}

// OpenSampler opens a session that reads the metrics of a running server.
func (l *Lifecycle) OpenSampler(ctx context.Context, a kurabe.Assignment) (Sampler, error) {
	return l.c.Driver.OpenSampler(ctx, l.instance(a))
}

// Used is what the instance occupies on disk, in bytes.
func (h Home) Used() (int64, error) {
	used, err := volume.UsedBytes(h.Dir)
	// A snapshot in the making is not the instance's, nor is a follower's data.
	for _, dir := range []string{h.CopyDir(), h.FeedDir()} {
		if err == nil && exists(dir) {
			copying := int64(0)
			copying, err = volume.UsedBytes(dir)
			used -= copying
		}
	}
	return max(0, used), err
}

// observeProcess finds the recorded process, or what it left behind.
func (l *Lifecycle) observeProcess(id kurabe.InstanceID, h Home, o *Observation) error {
	o.Record = exists(h.RecordFile())
	p, alive, err := h.Daemon().Find()
	if err != nil {
		return fmt.Errorf("find the server of %s: %w", h.Dir, err)
	}
	if alive {
		o.Running, o.PID, o.Process = true, p.PID, identity(p)
		o.StartedAt = p.StartedAt()
		o.Boot, _ = strconv.ParseInt(p.Tags[bootTag], 10, 64)
		o.Version = p.Tags[versionTag]
		o.Wait = p.Wait
		return nil
	}
	// On both sides of the look, so that neither a beginning nor an end is missed.
	copying := l.holds(id)
	held, err := proc.LockHeld(h.LockFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the lock of %s: %w", h.Dir, err)
	}
	o.Survivors = held && !copying && !l.holds(id)
	if n := o.Applied; o.Record && n.Process != "" && !n.Ready && !n.Stopped {
		if o.Stillborn, err = proc.SameBoot(h.RecordFile()); err != nil {
			return fmt.Errorf("look at the start of the server of %s: %w", h.Dir, err)
		}
	}
	return nil
}

// endedStep is the step that removes the record of a server that ended by itself. A server that
// was never ready has failed to start, although it ended before anybody waited for it: counted as
// a crash, it would never be reported as unable to start, nor why.
func (o Observation) endedStep() StepName {
	if o.Stillborn {
		return StepWaitReady
	}
	return StepNoteCrash
}

// identity names one process of one boot of the host.
func identity(p proc.Process) string {
	return strconv.Itoa(p.PID) + "@" + strconv.FormatUint(p.StartTime, 10)
}

// current says whether the rendered files are what is on disk, for the engine to read, and
// no others.
func current(dir string, files map[string]string, gid int) bool {
	entries, err := volume.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		return false
	}
	for name, want := range files {
		path := filepath.Join(dir, name)
		have, err := volume.ReadFile(path)
		if err != nil || string(have) != want || !readableBy(path, gid) {
			return false
		}
	}
	return true
}

// fingerprint identifies the settings and the certificate that a server should
// have loaded.
func fingerprint(files map[string]string, h Home) string {
	sum := sha256.New()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(sum, "%s\x00%s\x00", name, files[name])
	}
	certificate, _ := volume.ReadFile(filepath.Join(h.TLSDir(), certificateFile))
	sum.Write(certificate)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func exists(path string) bool {
	_, err := volume.Lstat(path)
	return err == nil
}

// groupName is the control group of an instance.
func groupName(id kurabe.InstanceID) string { return string(id) }
