package hostlink

import (
	"context"
	"errors"
	"time"

	"kurabe"
)

// Beat tells the service that the host is there, until ctx ends. It ends with ErrRefused
// when the service no longer knows the host.
func (r *Remote) Beat(ctx context.Context) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, silenceMax)
		_ = r.call(one, callAlive, struct{}{}, nil) // the stream tells of its troubles
		cancel()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Refused says that the service's newest word was that it does not know this host.
func (r *Remote) Refused() bool { return r.refused.Load() }

// Renew has a new certificate signed for the host's own key or a new one.
func (r *Remote) Renew(ctx context.Context, csrPEM []byte) ([]byte, error) {
	var a certAnswer
	if err := r.call(ctx, callRenew, renewRequest{csrPEM}, &a); err != nil {
		return nil, err
	}
	if len(a.CertPEM) == 0 {
		return nil, errors.New("renew: the service has sent no certificate")
	}
	return a.CertPEM, nil
}

// PutReport implements Link.
func (r *Remote) PutReport(ctx context.Context, report kurabe.InstanceReport) error {
	return r.call(ctx, callPutReport, report, nil)
}

// DropReport implements Link.
func (r *Remote) DropReport(ctx context.Context, _ kurabe.HostID, id kurabe.InstanceID) error {
	return r.call(ctx, callDropReport, dropRequest{Instance: id}, nil)
}

// PutSnapshotReport implements Link.
func (r *Remote) PutSnapshotReport(ctx context.Context, report kurabe.SnapshotReport) error {
	return r.call(ctx, callPutSnapshotReport, report, nil)
}

// DropSnapshotReport implements Link.
func (r *Remote) DropSnapshotReport(ctx context.Context, _ kurabe.HostID, id kurabe.SnapshotID) error {
	return r.call(ctx, callDropSnapshotReport, dropRequest{Snapshot: id}, nil)
}

// PutLogs implements Link.
func (r *Remote) PutLogs(ctx context.Context, report kurabe.LogReport) error {
	return r.call(ctx, callPutLogs, report, nil)
}

// PutHost implements Link.
func (r *Remote) PutHost(ctx context.Context, h kurabe.HostReport) error {
	return r.call(ctx, callPutHost, h, nil)
}

// PutCatalog implements Link.
func (r *Remote) PutCatalog(ctx context.Context, _ kurabe.HostID, c kurabe.Catalog) error {
	return r.call(ctx, callPutCatalog, catalogRequest{c}, nil)
}

// Sign implements Link.
func (r *Remote) Sign(ctx context.Context, q SignRequest) (Certificate, error) {
	var c Certificate
	err := r.call(ctx, callSign, q, &c)
	return c, err
}
