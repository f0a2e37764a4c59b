package kurabe

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// ExplainInput names a DB instance, or a DB cluster by its name or as cluster:NAME.
type ExplainInput struct{ Name string }

// ExplainOutput is a document: it holds the service's records as they are stored.
type ExplainOutput struct {
	Explanation reconcile.Explanation
}

func (a API) explain(_ context.Context, in *ExplainInput) (*ExplainOutput, error) {
	i, err := a.named(in.Name)
	if err != nil {
		return nil, err
	}
	return &ExplainOutput{reconcile.Explain(a.Control.View, i, a.Control.Now())}, nil
}

// named finds a DB instance, or a DB cluster by its name or as cluster:NAME.
func (a API) named(name string) (*store.Instance, error) {
	i, ok := a.Control.View.InstanceByName(name)
	if !ok {
		i, ok = a.Control.View.InstanceByName(kurabe.NameKey(name, true))
	}
	if !ok {
		return nil, kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance %s not found.", name)
	}
	return i, nil
}

// DescribeEndpointsInput has no members.
type DescribeEndpointsInput struct{}

// DescribeEndpointsOutput has the endpoints that have names.
type DescribeEndpointsOutput struct {
	Endpoints []control.NamedEndpoint
}

func (a API) describeEndpoints(context.Context, *DescribeEndpointsInput) (*DescribeEndpointsOutput, error) {
	return &DescribeEndpointsOutput{a.Control.NamedEndpoints()}, nil
}

// DescribeReplicationInput has no members.
type DescribeReplicationInput struct{}

// DescribeReplicationOutput has an entry for each instance and cluster that has a standby, a
// reader or a replica, or is a replica.
type DescribeReplicationOutput struct {
	Replication []kurabe.Following
}

func (a API) describeReplication(ctx context.Context, _ *DescribeReplicationInput) (*DescribeReplicationOutput, error) {
	return &DescribeReplicationOutput{a.Following(ctx)}, nil
}

// DescribeSnapshotsInput narrows the list, where a member is set.
type DescribeSnapshotsInput struct{ InstanceName, SnapshotName string }

// DescribeSnapshotsOutput tells of snapshots what RDS's API has no members for.
type DescribeSnapshotsOutput struct {
	Snapshots []kurabe.SnapshotKnown
}

func (a API) describeSnapshots(_ context.Context, in *DescribeSnapshotsInput) (*DescribeSnapshotsOutput, error) {
	other := func(asked, value string) bool { return asked != "" && !strings.EqualFold(asked, value) }
	return &DescribeSnapshotsOutput{slices.DeleteFunc(reconcile.Snapshots(a.Control.View), func(k kurabe.SnapshotKnown) bool {
		return other(in.InstanceName, k.Instance) || other(in.SnapshotName, k.Name)
	})}, nil
}

// StartVerificationInput names a snapshot, or an instance whose newest snapshot is meant.
type StartVerificationInput struct{ Name string }

// VerificationOutput is the state of a verification.
type VerificationOutput struct {
	Verification control.Verified
}

func (a API) startVerification(ctx context.Context, in *StartVerificationInput) (*VerificationOutput, error) {
	if in.Name == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Name must be that of a DB instance or a snapshot")
	}
	v, err := a.Control.Verify(ctx, in.Name)
	return &VerificationOutput{v}, err
}

// DescribeVerificationInput names a snapshot, and a verification of it by its number.
type DescribeVerificationInput struct {
	SnapshotName string
	Seq          int64
}

func (a API) describeVerification(_ context.Context, in *DescribeVerificationInput) (*VerificationOutput, error) {
	v, err := a.Control.Verification(in.SnapshotName, in.Seq)
	return &VerificationOutput{v}, err
}

// AcceptDataLossInput names an instance, the epoch that its primary writes in, and the standby
// that is to take over.
type AcceptDataLossInput struct {
	Name  string
	Epoch int64
	To    kurabe.InstanceID
}

// AcceptDataLossOutput says when the loss was accepted.
type AcceptDataLossOutput struct {
	At time.Time `json:"at"`
}

func (a API) acceptDataLoss(ctx context.Context, in *AcceptDataLossInput) (*AcceptDataLossOutput, error) {
	_, err := a.Control.RecoverInstance(ctx, in.Name, kurabe.Epoch(in.Epoch), in.To)
	return &AcceptDataLossOutput{a.Control.Now().UTC()}, err
}
