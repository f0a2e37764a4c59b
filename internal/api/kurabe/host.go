package kurabe

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/hostlink"
	"kurabe/internal/reconcile"
)

// HostInput names a host.
type HostInput struct{ Host kurabe.HostID }

// DescribeHostsInput has no members.
type DescribeHostsInput struct{}

// HostsOutput has all hosts, after a change those after it.
type HostsOutput struct {
	Hosts []control.HostInfo
}

func (a API) hosts(err error) (*HostsOutput, error) {
	return &HostsOutput{a.Control.Hosts()}, err
}

func (a API) describeHosts(context.Context, *DescribeHostsInput) (*HostsOutput, error) {
	return a.hosts(nil)
}

// DescribeLeavingServersOutput has the servers of a host that is to be emptied.
type DescribeLeavingServersOutput struct {
	Servers []reconcile.Leaving
}

func (a API) describeLeavingServers(_ context.Context, in *HostInput) (*DescribeLeavingServersOutput, error) {
	return &DescribeLeavingServersOutput{reconcile.LeavingHost(a.Control.View, in.Host, a.Control.Now())}, nil
}

// CreateJoinTokenInput says for how long the token is good, in seconds, and whether for a server
// of the service in place of a host.
type CreateJoinTokenInput struct {
	ValiditySeconds float64
	Server          bool
}

// CreateJoinTokenOutput lets a host in.
type CreateJoinTokenOutput struct {
	Token     string
	Address   string // HOST:PORT
	ExpiresAt time.Time
	State     string // flags that a server needs for the state that this one has
}

func (a API) createJoinToken(ctx context.Context, in *CreateJoinTokenInput) (*CreateJoinTokenOutput, error) {
	if a.JoinAddress == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "no host can join: start the service with --host-listen ADDRESS:PORT")
	}
	add, state := a.Control.AddJoinToken, ""
	if in.Server {
		if err := a.CheckServers(ctx); err != nil {
			return nil, err
		}
		add, state = a.Control.AddServerToken, a.ServerOptions
	}
	t := hostlink.NewToken(a.Authority)
	stored, err := add(ctx, t.ID, hostlink.SecretHash(t.Secret.Reveal()), time.Duration(in.ValiditySeconds*float64(time.Second)))
	return &CreateJoinTokenOutput{t.Text(), a.JoinAddress, stored.ExpiresAt, state}, err
}

// DrainHostInput names a host that is to be emptied, or no more where Undo is set.
type DrainHostInput struct {
	Host kurabe.HostID
	Undo bool
}

func (a API) drainHost(ctx context.Context, in *DrainHostInput) (*HostsOutput, error) {
	return a.hosts(a.Control.DrainHost(ctx, in.Host, !in.Undo))
}

func (a API) removeHost(ctx context.Context, in *HostInput) (*HostsOutput, error) {
	return a.hosts(a.Control.RemoveHost(ctx, in.Host))
}

func (a API) giveUpHost(ctx context.Context, in *HostInput) (*HostsOutput, error) {
	return a.hosts(a.Control.GiveUpHost(ctx, in.Host))
}
