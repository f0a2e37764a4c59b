package hostlink

import (
	"context"
	"errors"
	"time"

	"kurabe"
)

// Alive says that the host is there.
func (r *Remote) Alive(ctx context.Context, q Alive) (a AliveAnswer, err error) {
	return a, r.call(ctx, aliveTime, callAlive, q, &a)
}

// Place asks for the place of this host, until it has it, or nobody has answered within a time.
// ErrDouble when another machine has had it for as long as patience.
func (r *Remote) Place(ctx context.Context, within, patience time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(within, cancel)
	defer late.Stop()
	for began, double := time.Now(), error(nil); ; {
		at := r.selector.now()
		_, err := r.Alive(ctx, Alive{Looking: true})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrDouble):
			if double == nil {
				late.Reset(patience - time.Since(began))
			}
			double = err
		}
		if ctx.Err() == nil {
			r.turn(at, err)
		}
		select {
		case <-time.After(retryPauseOfSeveral):
		case <-ctx.Done():
			if double != nil {
				return double
			}
			return err
		}
	}
}

// Renew has a new certificate signed for the host's own key or a new one.
func (r *Remote) Renew(ctx context.Context, csrPEM []byte) ([]byte, error) {
	var a certAnswer
	if err := r.call(ctx, callTime, callRenew, renewRequest{csrPEM}, &a); err != nil {
		return nil, err
	}
	if len(a.CertPEM) == 0 {
		return nil, errors.New("renew the certificate: the answer has none")
	}
	return a.CertPEM, nil
}

// PutReport implements Link.
func (r *Remote) PutReport(ctx context.Context, report kurabe.Word) error {
	put, _ := callsOf(report.Envelope().Kind)
	return r.call(ctx, reportTime, put, report, nil)
}

// DropReport implements Link.
func (r *Remote) DropReport(ctx context.Context, _ kurabe.HostID, ref kurabe.Ref) error {
	_, drop := callsOf(ref.Kind)
	return r.call(ctx, reportTime, drop, dropOf(ref), nil)
}

// PutLogs implements Link.
func (r *Remote) PutLogs(ctx context.Context, report kurabe.LogReport) error {
	return r.call(ctx, reportTime, callPutLogs, report, nil)
}

// PutHost implements Link.
func (r *Remote) PutHost(ctx context.Context, h kurabe.HostReport) error {
	return r.call(ctx, reportTime, callPutHost, h, nil)
}

// PutCatalog implements Link.
func (r *Remote) PutCatalog(ctx context.Context, _ kurabe.HostID, c kurabe.Catalog) error {
	return r.call(ctx, callTime, callPutCatalog, catalogRequest{c}, nil)
}

// Sign implements Link.
func (r *Remote) Sign(ctx context.Context, q SignRequest) (Certificate, error) {
	var c Certificate
	err := r.call(ctx, callTime, callSign, q, &c)
	return c, err
}

// ProxyUsers implements Link.
func (r *Remote) ProxyUsers(ctx context.Context, _ kurabe.HostID, id kurabe.ProxyID) (users []ProxyUser, err error) {
	return users, r.call(ctx, callTime, callProxyUsers, proxyUsersRequest{id}, &users)
}
