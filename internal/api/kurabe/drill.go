package kurabe

import (
	"context"

	"kurabe"
	"kurabe/internal/drill"
)

// PermitDrillInput names a server of an instance or cluster, the process that it was seen as, and
// what is to be done to it.
type PermitDrillInput struct {
	Name   string
	Server kurabe.InstanceID
	PID    int
	Fault  drill.Fault
}

// check refuses what no host does.
func (in *PermitDrillInput) check() error {
	if in.PID < 1 {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "PID %d is no number of a process", in.PID)
	}
	return in.Fault.Check()
}

// PermitDrillOutput has what StrikeDrill needs.
type PermitDrillOutput struct {
	Permit drill.Permit
}

// permitDrill asks for what strikeDrill needs; nothing is done.
func (a API) permitDrill(ctx context.Context, in *PermitDrillInput) (*PermitDrillOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	m, err := a.Control.DrillTarget(in.Name, in.Server, in.PID)
	if err != nil {
		return nil, err
	}
	permit, err := drill.AskPermit(ctx, a.Hosts, m.Host, in.Server, in.PID, in.Fault)
	return &PermitDrillOutput{permit}, err
}

// StrikeDrillInput is what was permitted, with the key of the permit.
type StrikeDrillInput struct {
	Target PermitDrillInput
	Key    string
}

// StrikeDrillOutput has no members.
type StrikeDrillOutput struct{}

// strikeDrill tells users, and has it done.
func (a API) strikeDrill(ctx context.Context, in *StrikeDrillInput) (*StrikeDrillOutput, error) {
	of := &in.Target
	if err := of.check(); err != nil {
		return nil, err
	}
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	m, err := a.Control.TellDrill(ctx, of.Name, of.Server, of.PID, of.Fault.Done())
	if err != nil {
		return nil, err
	}
	return &StrikeDrillOutput{}, drill.AskStrike(ctx, a.Hosts, m.Host, of.Server, in.Key, of.Fault)
}

// HoldDrillInput names what was begun by the key of its permit. End ends it.
type HoldDrillInput struct {
	Host   kurabe.HostID
	Server kurabe.InstanceID
	Key    string
	End    bool
}

// HoldDrillOutput says what is known of it.
type HoldDrillOutput struct {
	Held drill.Held
}

// holdDrill has what was begun go on or end. The server may have ended by now, or be none of the
// instance any more: its host is named, and knows by the key what is meant.
func (a API) holdDrill(ctx context.Context, in *HoldDrillInput) (*HoldDrillOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	held, err := drill.AskHold(ctx, a.Hosts, in.Host, in.Server, in.Key, in.End)
	return &HoldDrillOutput{held}, err
}

func checkKey(key string) error {
	if key == "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "a permit is needed: ask for it with PermitDrill")
	}
	return nil
}
