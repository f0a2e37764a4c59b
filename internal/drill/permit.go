package drill

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/netcut"
	"kurabe/internal/proc"
)

// Permit is a host's word that it will do something to one process of its own when it is shown
// again: once, and for PermitTime by the host's own clock. Only the memory of the host's agent
// has it, so one that was started since knows of none.
type Permit struct {
	Fault
	Key       string            `json:"key"`
	Server    kurabe.InstanceID `json:"server"`
	Host      kurabe.HostID     `json:"host"`
	PID       int               `json:"pid"`
	StartTime uint64            `json:"startTime"` // clock ticks since the host's boot
}

const (
	// PermitTime is how long a permit is good for: what is shown it on its way, the record of
	// an event, and an answer. What arrives later does nothing.
	PermitTime = 10 * time.Second
	// permitKept is how much longer it is known what became of one, so that a question that is
	// asked twice has one answer.
	permitKept = time.Minute
	// permitsMax bounds them.
	permitsMax = 32
)

// serverID is what an id of a server looks like; it becomes the name of a folder.
var serverID = regexp.MustCompile(`^db-[A-Z0-9]{1,64}(~[1-9][0-9]{0,8})?$`)

// Permits are those of one host. What was permitted is done on this machine, by this process.
type Permits struct {
	host    kurabe.HostID
	homes   string        // the folder of the servers' homes
	guard   []string      // runs GuardMain
	now     func() int64  // CLOCK_BOOTTIME in nanoseconds
	silence time.Duration // HoldTime

	mu    sync.Mutex // guards given, and what is in it
	given map[string]*given
}

// given is a permit with the process that it is for: a handle of that one, not its number.
type given struct {
	Permit
	home    engine.Home
	process proc.Process
	until   int64
	forget  int64 // from then on it need not be known
	used    bool
	failure error // of its use
	hold    *hold // what its use has begun
}

// NewPermits returns the permits of a host that has its servers' homes in a folder. Guard is the
// command line that runs GuardMain; its arguments are added.
func NewPermits(host kurabe.HostID, homes string, guard []string) *Permits {
	return &Permits{host: host, homes: homes, guard: guard, now: proc.Boottime, silence: HoldTime, given: map[string]*given{}}
}

// Give permits to do something to a server, if it runs as the process that is named.
func (p *Permits) Give(server kurabe.InstanceID, pid int, f Fault) (Permit, error) {
	if err := f.Check(); err != nil {
		return Permit{}, err
	}
	if !serverID.MatchString(string(server)) {
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "invalid server id %.80q", server)
	}
	home := engine.Home{Dir: filepath.Join(p.homes, string(server))}
	process, found, err := home.Daemon().Find()
	switch {
	case err != nil:
		return Permit{}, fmt.Errorf("look up the process of %s: %w", server, err)
	case !found:
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has no running process on host %s", server, p.host)
	case process.PID != pid:
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s is now process %d on host %s, not %d: start the drill again", server, process.PID, p.host, pid)
	}
	if err := process.Signal(0); err != nil {
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "the agent of host %s cannot signal process %d of %s: %v", p.host, pid, server, err)
	}
	if f.Action == Cut {
		if err := netcut.Probe(); err != nil {
			return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "host %s cannot cut servers off from each other: %v", p.host, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	maps.DeleteFunc(p.given, func(_ string, g *given) bool { return now >= g.forget })
	if len(p.given) >= permitsMax {
		return Permit{}, kurabe.Errorf(kurabe.CodeThrottled, "too many drills: %d for servers of host %s within %v", permitsMax, p.host, PermitTime+permitKept)
	}
	g := &given{home: home, process: process, until: now + int64(PermitTime), forget: now + int64(PermitTime+permitKept),
		Permit: Permit{Fault: f, Key: rand.Text(), Server: server, Host: p.host, PID: process.PID, StartTime: process.StartTime}}
	p.given[g.Key] = g
	return g.Permit, nil
}

// Use does what a permit is for; a freeze or a cut has begun when it returns. Asked again it
// says what the first time did, and does nothing.
func (p *Permits) Use(server kurabe.InstanceID, key string, f Fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, known := p.given[key]
	switch {
	case !known || g.Server != server:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s was left alone: host %s has no such permit; it has expired, or the agent was restarted", server, p.host)
	case !g.Is(f):
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s was left alone: the request says %s, the permit says %s", server, f.Done(), g.Done())
	case g.used:
		return g.failure
	case p.now() >= g.until:
		return p.late(server)
	}
	g.used = true
	if g.Lasts() {
		g.failure = p.lastLocked(g)
		return g.failure
	}
	g.failure = g.process.Signal(syscall.SIGKILL)
	if errors.Is(g.failure, os.ErrProcessDone) {
		g.failure = p.gone(g.Permit)
	}
	return g.failure
}

func (p *Permits) late(server kurabe.InstanceID) error {
	return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s was left alone: the request came later than %v after host %s had permitted it", server, PermitTime, p.host)
}

func (p *Permits) gone(of Permit) error {
	return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s was left alone: process %d had already ended", of.Server, of.PID)
}
