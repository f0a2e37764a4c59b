package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
)

// The questions to a host of a drill that runs on another one. A permit for what lasts has a
// kind of its own: a host that does not know it would take it for one to kill.
var (
	permitKind        = hostread.Kind[question, Permit]{Name: "drill-permit", Class: hostread.Failover}
	permitLastingKind = hostread.Kind[question, Permit]{Name: "drill-permit-hold", Class: hostread.Failover}
	strikeKind        = hostread.Kind[question, struct{}]{Name: "drill-strike", Class: hostread.Failover}
	holdKind          = hostread.Kind[question, Held]{Name: "drill-hold", Class: hostread.Failover}
)

// question asks for a permit to do something to a server that runs as a process, shows one, or
// has what it began go on or end.
type question struct {
	Server kurabe.InstanceID
	PID    int    `json:",omitempty"`
	Key    string `json:",omitempty"`
	Fault  Fault  `json:",omitzero"`
	End    bool   `json:",omitempty"`
}

// GuardCommand runs GuardMain. This link, not our path: after an upgrade on disk we are still the
// old program.
var GuardCommand = []string{"/proc/self/exe", "drill-guard"}

// Handle has a host answer the questions of drills on other hosts.
func Handle(h *hostread.Handlers, permits *Permits, log *slog.Logger) {
	give := func(_ context.Context, q question) (Permit, error) { return permits.Give(q.Server, q.PID, q.Fault) }
	hostread.Handle(h, permitKind, give)
	hostread.Handle(h, permitLastingKind, give)
	hostread.Handle(h, strikeKind, func(_ context.Context, q question) (done struct{}, err error) {
		if err = permits.Use(q.Server, q.Key, q.Fault); err == nil {
			log.Info("server struck for a drill: "+q.Fault.Done(), logkey.Instance, q.Server)
		}
		return done, err
	})
	hostread.Handle(h, holdKind, func(ctx context.Context, q question) (Held, error) {
		return permits.Hold(ctx, q.Server, q.Key, q.End)
	})
}

// AskPermit asks a host for a permit to do f to a server of its own that runs as a process.
func AskPermit(ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, server kurabe.InstanceID, pid int, f Fault) (Permit, error) {
	kind := permitKind
	if f.Lasts() {
		kind = permitLastingKind
	}
	return ask(ctx, hosts, host, kind, question{Server: server, PID: pid, Fault: f}, "nothing was done")
}

// AskStrike has a host do what it permitted by a key.
func AskStrike(ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, server kurabe.InstanceID, key string, f Fault) error {
	_, err := ask(ctx, hosts, host, strikeKind, question{Server: server, Key: key, Fault: f},
		fmt.Sprintf("whether the server was %s is not known; later than %v from now on it is not", f.Done(), PermitTime))
	return err
}

// AskHold has what a strike began go on, or end.
func AskHold(ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, server kurabe.InstanceID, key string, end bool) (Held, error) {
	return ask(ctx, hosts, host, holdKind, question{Server: server, Key: key, End: end},
		fmt.Sprintf("what was done lasts for %v at most without a word that it hears", HoldTime))
}

// ask asks the host that has the server. why says what is known when it does not answer.
func ask[A any](ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, k hostread.Kind[question, A], q question, why string) (A, error) {
	a, err := hostread.Ask(ctx, hosts, host, k, q)
	if cause := errors.Unwrap(err); cause != nil && kurabe.CodeOf(err) == kurabe.CodeUnavailable {
		err = &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("host %s does not answer, or cannot: %s (%v)", host, why, cause), Err: err}
	}
	return a, err
}
