package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"kurabe"
)

// Group mirrors the servers of an instance with several in the answer of
// Explain.
type Group struct {
	Epoch                        kurabe.Epoch
	Writer, Handover, Recovering kurabe.InstanceID
	Switch                       kurabe.InstanceID
	Sync                         []kurabe.InstanceID
	Since                        time.Time
	Blocks                       bool
	Choosing                     bool
	Servers                      []Server

	// following is what the hosts say now of those that follow.
	following kurabe.Following
	// waits are those of the status.
	waits kurabe.EndedWaits
}

// Server is one server of a group.
type Server struct {
	kurabe.Member
	Goal       kurabe.Goal
	Generation kurabe.Generation
	Role       *kurabe.Role
	Report     *kurabe.InstanceReport
}

// print tells who writes and who has every commit, then a line for each server. Of an
// instance with one server, nothing.
func (g *Group) print(w io.Writer) {
	if g == nil {
		return
	}
	lines := []string{fmt.Sprintf("epoch %d: %s writes", g.Epoch, g.Writer)}
	switch {
	case g.Choosing:
		lines[0] = fmt.Sprintf("epoch %d: nobody writes; %s is lost, and one of %s has every commit: whoever has most takes over", g.Epoch, g.Writer, JoinIDs(g.Sync))
	case len(g.Sync) > 0:
		lines[0] += ", commits wait for " + JoinIDs(g.Sync)
	case !g.Since.IsZero():
		lines = append(lines, fmt.Sprintf("no standby has every commit: what was written since %s would be lost with the writer%s", When(g.Since), g.alone()))
	}
	if g.Blocks {
		lines = append(lines, "commits go on alone no more: "+kurabe.ParameterStandbyLost+" is "+kurabe.StandbyLostBlock)
	}
	if g.Handover != "" {
		lines = append(lines, "the writer hands over to "+string(g.Handover))
	}
	if g.Switch != "" {
		lines = append(lines, "the instance yields to its read replica "+string(g.Switch))
	}
	if g.following.Failovers > 0 {
		lines = append(lines, fmt.Sprintf("failovers since it was made: %d", g.following.Failovers))
	}
	lines = append(lines, waitWords(g.waits)...)
	if g.Recovering != "" {
		lines = append(lines, "with a loss that was accepted, "+string(g.Recovering)+" is to write once the writer has ended")
	}
	for _, s := range g.Servers {
		line := s.line()
		for _, f := range g.following.Followers {
			if f.Server == s.ID {
				line += ", " + behindWords(f)
			}
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(w, "servers     %s\n", strings.Join(lines, "\n            "))
}

// waitWords tell of commits that ended their wait early, nothing where there was none.
func waitWords(w kurabe.EndedWaits) (lines []string) {
	if w.Sum() > 0 {
		line := fmt.Sprintf("commits that ended their wait for a standby early: %d cancelled, %d by the end of the session", w.Cancelled, w.Ended)
		if w.UnreplicatedAt != "" {
			line += "; " + string(w.UnreplicatedAt) + " alone has the newest"
		}
		lines = append(lines, line)
	}
	if w.Uncounted {
		lines = append(lines, "commits that end their wait for a standby early are not seen: log_min_messages or log_destination keeps them out of the server's log")
	}
	return lines
}

// alone is for how long that has been so.
func (g *Group) alone() string {
	d, known := g.following.Unprotected(time.Now())
	if !known || g.following.Synced {
		return ""
	}
	return fmt.Sprintf(" (%s by now)", d.Round(time.Second))
}

// line tells where a server is, what it is there for, and what its host sees of it.
func (s Server) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: zone %s on %s", s.ID, s.Zone, s.Host)
	if s.ListensAt != "" {
		fmt.Fprintf(&b, " at %s", s.ListensAt)
	}
	switch {
	case s.Generation == 0:
		b.WriteString(", not assigned")
	case s.Goal != kurabe.GoalRunning || s.Role == nil:
		fmt.Fprintf(&b, ", generation %d: %s", s.Generation, s.Goal)
	default:
		fmt.Fprintf(&b, ", generation %d: %s", s.Generation, s.Role.Duty)
	}
	fmt.Fprintf(&b, "; %s", s.Seen())
	return b.String()
}

// Seen is what the host of a server sees of it.
func (s Server) Seen() string {
	r := s.Report
	if r == nil {
		return "its host has not reported it"
	}
	parts := []string{Doing(r)}
	if r.Generation != s.Generation {
		parts = append(parts, fmt.Sprintf("its host is at generation %d", r.Generation))
	} else if !r.Done && r.Step != "" {
		parts = append(parts, "at work on "+r.Step)
	}
	switch {
	case s.Role == nil || !s.Role.Leased || r.Role == nil:
	case r.Role.Leased:
		parts = append(parts, "under a lease")
	default:
		parts = append(parts, "without the lease that it needs")
	}
	if s.Leaving {
		parts = append(parts, "it is taken out of the group")
	}
	if r.Role != nil && len(r.Role.SilentFollowers) > 0 {
		parts = append(parts, "hears nothing of "+JoinIDs(r.Role.SilentFollowers))
	}
	if f := r.Failure; f != nil {
		parts = append(parts, fmt.Sprintf("step %s failed %d times: %s", f.Step, f.Attempts, f.Message))
	}
	return strings.Join(parts, ", ")
}

// Doing is what a server does now.
func Doing(r *kurabe.InstanceReport) string {
	role := r.Role
	switch {
	case role != nil && role.Unresponsive:
		return "it does not answer"
	case role != nil && role.SteppedDown && !r.Running:
		return "it has stopped in order"
	case r.Absent:
		return "nothing is left of it"
	case !r.Running:
		return "it does not run"
	case role != nil && role.Writing:
		return "it writes"
	case role != nil && role.IsPrimary:
		return "it keeps clients out until another server has what they would see"
	case role != nil && role.Following:
		return "it follows"
	}
	return "it runs"
}

// JoinIDs joins them with commas.
func JoinIDs(ids []kurabe.InstanceID) string {
	var out []string
	for _, id := range ids {
		out = append(out, string(id))
	}
	return strings.Join(out, ", ")
}
