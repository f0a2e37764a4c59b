package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// Explanation is everything that is known of one instance, and what would be
// planned next. It holds no secret: verifiers are masked.
type Explanation struct {
	Spec       kurabe.InstanceSpec    `json:"spec"`
	Status     *kurabe.InstanceStatus `json:"status"`
	Assignment *kurabe.Assignment     `json:"assignment"`
	Report     *kurabe.InstanceReport `json:"report"`
	// Group is nil of an instance with one server. Assignment and Report are the writer's.
	Group     *GroupExplanation     `json:"group,omitempty"`
	Host      *kurabe.HostReport    `json:"host"`
	Backups   BackupExplanation     `json:"backups"`
	Snapshots []SnapshotExplanation `json:"snapshots"` // oldest first
	Plan      PlanExplanation       `json:"plan"`
}

// PlanExplanation is the next plan in words.
type PlanExplanation struct {
	Reasons []string `json:"reasons"`
	// LeftAlone: its records do not say what it is, so nothing is planned.
	LeftAlone     bool      `json:"leftAlone,omitempty"`
	NewGeneration bool      `json:"newGeneration"`
	NewStatus     bool      `json:"newStatus"`
	Gone          bool      `json:"gone"`
	LookAgain     time.Time `json:"lookAgain,omitzero"`
}

const masked = "***"

// Explain tells what is known of an instance and plans it without writing.
func Explain(view *store.View, i *store.Instance, now time.Time) Explanation {
	w := newFleet(view).world(i, now)
	alone := whyLeftAlone(i)
	r := plan.Result{Reasons: []string{alone}}
	if alone == "" {
		r = plan.Next(w)
	}
	e := Explanation{Spec: *i.Spec, Status: i.Status, Report: w.Report, Plan: PlanExplanation{
		Reasons: r.Reasons, LeftAlone: alone != "", NewGeneration: r.Assignment != nil || len(r.Members) > 0, NewStatus: r.Status != nil, Gone: r.Gone, LookAgain: r.LookAgain,
	}}
	e.Spec.Password.Verifier = masked
	e.Group = explainGroup(w)
	e.Backups, e.Snapshots = explainBackups(view, w), explainSnapshots(view, i.ID)
	if w.Assignment != nil {
		a := *w.Assignment
		a.Password.Verifier = masked
		e.Assignment = &a
		if h, ok := view.Host(a.Host); ok {
			e.Host = &h
		}
	}
	return e
}
