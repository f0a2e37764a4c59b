package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/cgroup"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
)

// Signer has a certificate signed by the internal authority.
type Signer func(ctx context.Context, csrPEM []byte, ips, names []string) (certPEM, caPEM []byte, err error)

// Config is what a Lifecycle needs from its host.
type Config struct {
	Driver Driver
	// Homes holds one folder for each instance, Templates the data folders that
	// new ones are copied from, Runtime short paths for bind mounts.
	Homes, Templates, Runtime string
	// Snapshots holds one folder for each snapshot; on the file system of Homes
	// they can be clones.
	Snapshots string
	// Fetch gives a part of an instance's log for a restore to a moment.
	Fetch Fetch
	User  *proc.Credential // nil: as the service itself
	// Accounts gives each instance a user of its own; nil: all are User's.
	Accounts *account.Book
	Sign     Signer
	Levers   cgroup.Levers
	Now      func() time.Time
	// CopyBytesPerSecondMax bounds what is sent to a follower on another host, 0 does not.
	CopyBytesPerSecondMax int64
}

// Lifecycle implements Engine over a Driver: the steps that both engines share.
// It keeps no state of its own but the list of installed versions; the truth is
// on disk and in the kernel.
type Lifecycle struct {
	c       Config
	archive *snapshot.Archive // of Snapshots.UseArchive; nil: there is none

	mu       sync.Mutex // guards versions, making, held and feeding
	versions map[string]kurabe.EngineVersion
	making   map[string]*sync.Mutex     // one for each template
	held     map[kurabe.InstanceID]bool // stopped, and being copied: we are in the way of its start
	feeding  map[kurabe.InstanceID]int  // copies that are being sent
}

// NewLifecycle returns an Engine for the driver's installed versions.
func NewLifecycle(c Config, versions []kurabe.EngineVersion) *Lifecycle {
	l := &Lifecycle{c: c, versions: map[string]kurabe.EngineVersion{}, making: map[string]*sync.Mutex{}, held: map[kurabe.InstanceID]bool{}, feeding: map[kurabe.InstanceID]int{}}
	for _, v := range versions {
		l.versions[v.Version] = v
	}
	return l
}

// Home is the folder of an instance.
func (l *Lifecycle) Home(id kurabe.InstanceID) Home {
	return Home{Dir: filepath.Join(l.c.Homes, string(id))}
}

// instance gathers what the driver needs to know.
func (l *Lifecycle) instance(a kurabe.Assignment) Instance {
	a.Settings = enginesOnly(a.Settings)
	i := Instance{Assignment: a, Home: l.Home(a.Instance), Version: l.version(a.Version)}
	i.User = l.Account(a.Instance)
	if a.Role != nil && a.Role.Source != nil {
		i.SourceUser = l.Account(a.Role.Source.ID)
	}
	i.SeenDir = i.Home.Dir
	if cannotEnter(i.User, i.Home.Dir) {
		i.SeenDir = filepath.Join(l.c.Runtime, string(a.Instance))
	}
	return i
}

// instanceWithNotes is the instance with the notes of its folder.
func (l *Lifecycle) instanceWithNotes(a kurabe.Assignment) (Instance, error) {
	i := l.instance(a)
	if a.Role == nil {
		return i, nil
	}
	applied, err := readApplied(i.Home)
	i.ClientsKeptOut = keepsClientsOut(a, applied)
	return i, err
}

// keepsClientsOut says whether the settings of a server keep clients out.
func keepsClientsOut(a kurabe.Assignment, note Applied) bool {
	return a.Role != nil && a.Role.Duty == kurabe.DutyWrite && note.ClientsKeptOut
}

// version is the installed version that an instance of the given one runs with:
// that one, or, when the packages of the host have replaced it, the newest later one of
// its major. The zero value says that there is none: a running server is still
// watched then, but none can be started.
func (l *Lifecycle) version(want string) kurabe.EngineVersion {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.versions[want]; ok {
		return v
	}
	var best kurabe.EngineVersion
	for _, v := range l.versions {
		later := strings.HasPrefix(want, v.Major()+".") && kurabe.CompareVersions(v.Version, want) > 0
		if later && (best.Version == "" || kurabe.CompareVersions(v.Version, best.Version) > 0) {
			best = v
		}
	}
	return best
}

// cannotEnter says whether a parent of the folder keeps the engine's user out (a service below
// /root), so that the folder must be mounted elsewhere.
func cannotEnter(user *proc.Credential, dir string) bool {
	return user != nil && !proc.Traversable(filepath.Dir(dir), user.UID, user.GID)
}

// Steps implements Engine.
func (l *Lifecycle) Steps(a kurabe.Assignment, o Observation) []Step {
	names := Next(a, o)
	steps := make([]Step, len(names))
	for n, name := range names {
		steps[n] = Step{Name: name, Disruptive: disruptive[name], Do: func(ctx context.Context) error {
			return l.do(ctx, name, a)
		}}
	}
	return steps
}

// do runs one step under its own time limit.
func (l *Lifecycle) do(ctx context.Context, name StepName, a kurabe.Assignment) error {
	i, err := l.instanceWithNotes(a)
	if err != nil {
		return err
	}
	if i.Version.Version == "" && needsPrograms[name] {
		return fmt.Errorf("neither %s %s nor a later minor version is installed on this host; install it again", a.Engine, a.Version)
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout(name))
	defer cancel()
	switch name {
	case StepMakeHome:
		return l.makeHome(i)
	case StepCopyTemplate:
		return l.copyTemplate(ctx, i)
	case StepRestoreSnapshot:
		return l.restoreSnapshot(ctx, i)
	case StepIssueCertificate:
		return l.issueCertificate(ctx, i)
	case StepWriteSettings:
		return l.writeSettings(i)
	case StepSetLimits:
		return l.setLimits(i)
	case StepNoteCrash:
		return l.noteCrash(i)
	case StepEndSurvivors:
		return l.endSurvivors(ctx, i)
	case StepHandOver:
		return l.handOver(ctx, i)
	case StepStart:
		if l.holds(i.Instance) {
			return errCopying
		}
		return l.start(ctx, i)
	case StepWaitReady:
		return l.waitReady(ctx, i)
	case StepEnsureMaster:
		if err := l.prepareForMaster(ctx, &i); err != nil {
			return err
		}
		return l.ensureMaster(ctx, i)
	case StepSetPassword:
		return l.setPassword(ctx, i)
	case StepReload:
		return l.reload(ctx, i)
	case StepProbe:
		return l.probe(ctx, i)
	case StepStop:
		return l.stop(ctx, i)
	case StepKill:
		return l.kill(ctx, i)
	case StepRemoveLimits:
		return l.removeLimits(ctx, i)
	case StepRemoveHome:
		return l.removeHome(ctx, i)
	}
	return l.doInGroup(ctx, name, i)
}

// needsPrograms are the steps that use the engine's programs or render settings
// for them.
var needsPrograms = map[StepName]bool{
	StepCopyTemplate: true, StepRestoreSnapshot: true, StepWriteSettings: true, StepStart: true, StepReload: true,
	StepClone: true, StepReattach: true, StepRelease: true,
}

// Time limits of the steps. Recovery after a crash may replay gigabytes of log,
// so waiting for readiness is long; the agent reports the step meanwhile.
const (
	shortStep    = 30 * time.Second
	templateStep = 5 * time.Minute
	readyStep    = time.Hour
	stopStep     = 10 * time.Minute
	restoreStep  = 24 * time.Hour // of the largest data on the slowest disk
	// changeStep is that of a server which becomes a primary, or has its commits wait: a
	// checkpoint or two at most. Until it has come through, nothing else is done.
	changeStep = time.Minute
)

func stepTimeout(name StepName) time.Duration {
	switch name {
	case StepCopyTemplate:
		return templateStep
	case StepRestoreSnapshot, StepClone, StepReattach:
		return restoreStep
	case StepHandOver:
		return templateStep
	case StepWaitReady:
		return readyStep
	case StepStop, StepRemoveHome, StepStepDown, StepDiscardData:
		return stopStep
	case StepPromote, StepWaits:
		return changeStep
	}
	return shortStep
}
