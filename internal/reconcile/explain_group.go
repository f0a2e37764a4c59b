package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan"
)

// GroupExplanation is what is known of the servers of an instance that has several.
type GroupExplanation struct {
	Epoch  kurabe.Epoch      `json:"epoch"`
	Writer kurabe.InstanceID `json:"writer"`
	// SyncSet are those that have every commit. Without any, Since is from when on what was
	// written would be lost with the writer.
	SyncSet  []kurabe.InstanceID `json:"sync,omitempty"`
	Since    time.Time           `json:"since,omitzero"`
	Handover kurabe.InstanceID   `json:"handover,omitempty"`
	// Switch is the read replica that takes the place of the instance.
	Switch kurabe.InstanceID `json:"switch,omitempty"`
	// RequireStandby: commits go on alone no more.
	RequireStandby bool `json:"blocks,omitempty"`
	// Electing: nobody may write in this epoch; the member of SyncSet with the longest log is to.
	Electing bool `json:"choosing,omitempty"`
	// Recovering is who is to write although it lacks commits: an operator has accepted that.
	Recovering kurabe.InstanceID   `json:"recovering,omitempty"`
	Servers    []ServerExplanation `json:"servers"` // by number
}

// ServerExplanation is one of them: what it is there for, and what its host sees of it.
type ServerExplanation struct {
	kurabe.Member
	Goal       kurabe.Goal            `json:"goal"`
	Generation kurabe.Generation      `json:"generation"`
	Role       *kurabe.Role           `json:"role,omitempty"`
	Report     *kurabe.InstanceReport `json:"report,omitempty"`
}

func explainGroup(w plan.World) *GroupExplanation {
	g := w.Group
	if g == nil {
		return nil
	}
	e := &GroupExplanation{Epoch: g.Epoch, Writer: g.Primary, SyncSet: g.SyncSet, Since: g.UnprotectedSince, Handover: g.HandoverTo, Switch: g.SwitchoverTo, Electing: g.Electing, RequireStandby: g.RequireStandby, Recovering: g.ForcedPrimary}
	for _, m := range g.Members {
		s := ServerExplanation{Member: m, Report: w.Reports[m.ID]}
		if a := w.Members[m.ID]; a != nil {
			s.Goal, s.Generation, s.Role = a.Goal, a.Generation, a.Role
		}
		e.Servers = append(e.Servers, s)
	}
	return e
}
