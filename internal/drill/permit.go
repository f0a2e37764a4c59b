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
	"kurabe/internal/proc"
)

// Permit is a host's word that it will kill one process of its own when it is shown again:
// once, and for PermitTime by the host's own clock. Only the memory of the host's agent has it,
// so one that was started since knows of none.
type Permit struct {
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
	host  kurabe.HostID
	homes string       // the folder of the servers' homes
	now   func() int64 // CLOCK_BOOTTIME in nanoseconds

	mu    sync.Mutex // guards given, and what is in it
	given map[string]*given
}

// given is a permit with the process that it is for: a handle of that one, not its number.
type given struct {
	Permit
	process proc.Process
	until   int64
	used    bool
	failure error // of its use
}

// NewPermits returns the permits of a host that has its servers' homes in a folder.
func NewPermits(host kurabe.HostID, homes string) *Permits {
	return &Permits{host: host, homes: homes, now: proc.Boottime, given: map[string]*given{}}
}

// Give permits to kill a server, if it runs as the process that is named.
func (p *Permits) Give(server kurabe.InstanceID, pid int) (Permit, error) {
	if !serverID.MatchString(string(server)) {
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "%.80q is no id of a server", server)
	}
	home := engine.Home{Dir: filepath.Join(p.homes, string(server))}
	process, found, err := proc.Find(home.RecordFile())
	switch {
	case err != nil:
		return Permit{}, fmt.Errorf("look up the process of %s: %w", server, err)
	case !found:
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has no living process on host %s", server, p.host)
	case process.PID != pid:
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s is process %d on host %s by now, not %d: look again", server, process.PID, p.host, pid)
	}
	if err := process.Signal(0); err != nil {
		return Permit{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "the agent of host %s cannot signal process %d of %s: %v", p.host, pid, server, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	maps.DeleteFunc(p.given, func(_ string, g *given) bool { return now >= g.until+int64(permitKept) })
	if len(p.given) >= permitsMax {
		return Permit{}, kurabe.Errorf(kurabe.CodeThrottled, "%d drills of servers of host %s were asked for within %v", permitsMax, p.host, PermitTime+permitKept)
	}
	g := &given{process: process, until: now + int64(PermitTime),
		Permit: Permit{Key: rand.Text(), Server: server, Host: p.host, PID: process.PID, StartTime: process.StartTime}}
	p.given[g.Key] = g
	return g.Permit, nil
}

// Use kills the process that a permit is for. Asked again it says what the first time did,
// and does nothing.
func (p *Permits) Use(server kurabe.InstanceID, key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, known := p.given[key]
	switch {
	case !known || g.Server != server:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "nothing was done to %s: host %s knows of no such permit, since it is over or its agent was started anew", server, p.host)
	case g.used:
		return g.failure
	case p.now() >= g.until:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "nothing was done to %s: the word came later than %v after host %s had permitted it", server, PermitTime, p.host)
	}
	g.used = true
	err := g.process.Signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = kurabe.Errorf(kurabe.CodeInvalidInstanceState, "nothing was done to %s: process %d had ended before", server, g.PID)
	}
	g.failure = err
	return err
}
