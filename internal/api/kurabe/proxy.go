package kurabe

import (
	"context"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/proxy/process"
)

// DescribeProxyInput names a DB proxy.
type DescribeProxyInput struct{ Name string }

// DescribeProxyOutput is what the process of a proxy tells of itself: what it has counted since
// its start, its connections, and its clients, those with a connection first.
type DescribeProxyOutput struct {
	Proxy process.Status
}

func (a API) describeProxy(ctx context.Context, in *DescribeProxyInput) (*DescribeProxyOutput, error) {
	p, ok := a.Control.View.ProxyOfName(in.Name)
	if !ok {
		return nil, kurabe.Errorf(kurabe.CodeResourceNotFound, "DBProxy %s not found.", in.Name)
	}
	if p.Status == nil || p.Status.Host == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s is on no host yet", in.Name)
	}
	s, err := hostread.Ask(ctx, a.Hosts, p.Status.Host, process.StatusKind, process.StatusQuestion{Proxy: p.ID, Sessions: process.SessionsMax})
	return &DescribeProxyOutput{s}, err
}
