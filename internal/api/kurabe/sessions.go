package kurabe

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/hostread"
	"kurabe/internal/load"
	"kurabe/internal/store"
)

// DescribeSessionsInput names a DB instance, a DB cluster, whose primary is meant, or
// one of its servers.
type DescribeSessionsInput struct{ Name string }

// DescribeSessionsOutput has the sessions that were active at a moment of the last seconds, with
// what each waits for and which session blocks it. At is in RFC 3339.
type DescribeSessionsOutput struct {
	At       string
	Sessions []kurabe.ActiveSession
}

// latestAge is how old the newest list may be: a server that hangs makes none.
const latestAge = 30 * time.Second

func (a API) describeSessions(ctx context.Context, in *DescribeSessionsInput) (*DescribeSessionsOutput, error) {
	i, server, host, err := a.primary(in.Name)
	if err != nil {
		return nil, err
	}
	if !i.Spec.LoadKept {
		return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "the sessions of %s are not listed: modify it with EnablePerformanceInsights", in.Name)
	}
	latest, err := hostread.Ask(ctx, a.Hosts, host, load.LatestKind, server)
	if err == nil && a.Control.Now().Sub(latest.At) > latestAge {
		err = kurabe.Errorf(kurabe.CodeUnavailable, "the server of %s has listed no sessions in the last %.0f s", in.Name, latestAge.Seconds())
	}
	return &DescribeSessionsOutput{latest.At.UTC().Format(time.RFC3339), append([]kurabe.ActiveSession{}, latest.Sessions...)}, err
}

// primary finds a DB instance or cluster by name, its primary and the host of that. A server of a
// cluster can be named too.
func (a API) primary(name string) (i *store.Instance, server kurabe.InstanceID, host kurabe.HostID, err error) {
	if i, err = a.named(name); err == nil {
		server = i.ID
		if i.Group != nil && i.Group.Primary != "" {
			server = i.Group.Primary
		}
	} else {
		list, _ := a.Control.Instances(control.InstanceFilter{Names: []string{name}}, "", 1)
		if len(list) == 0 || list[0].Server == nil {
			return nil, "", "", err
		}
		server = list[0].Server.ID
		i, _ = a.Control.View.Instance(list[0].Spec.ID)
	}
	order, assigned := i.AssignmentOf(server)
	if !assigned {
		return nil, "", "", kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has no server yet", name)
	}
	return i, server, order.Value.Host, nil
}
