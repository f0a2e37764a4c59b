package hostlink

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// certificateValidity is the longest that clients accept of a server
// certificate (825 days).
const certificateValidity = 825 * 24 * time.Hour

// The pause before a lost watch is taken up again doubles between these.
const (
	retryPauseMin = 20 * time.Millisecond
	retryPauseMax = 2 * time.Second
)

// Signer is the certificate authority, as far as a Link needs it.
type Signer interface {
	Sign(csrPEM []byte, ips []net.IP, dnsNames []string, validity time.Duration) ([]byte, error)
	PEM() []byte
}

// Local is a Link inside the server's own process.
type Local struct {
	kv     store.KV
	signer Signer
	log    *slog.Logger
}

// NewLocal returns a Link over the store and the authority.
func NewLocal(kv store.KV, signer Signer, log *slog.Logger) *Local {
	return &Local{kv: kv, signer: signer, log: log}
}

// Assignments implements Link.
func (l *Local) Assignments(ctx context.Context, host kurabe.HostID) <-chan Update {
	out := make(chan Update)
	go func() {
		defer close(out)
		pause := retryPauseMin
		for ctx.Err() == nil {
			started, err := l.follow(ctx, host, out)
			if ctx.Err() != nil {
				return
			}
			if started {
				pause = retryPauseMin
			}
			if err != nil {
				l.log.Warn("watch of assignments lost, reading again", logkey.Host, string(host), logkey.Error, err)
			}
			select {
			case <-time.After(pause/2 + rand.N(pause)):
			case <-ctx.Done():
			}
			pause = min(2*pause, retryPauseMax)
		}
	}()
	return out
}

// follow delivers the whole set, then changes, until the watch breaks. It says
// whether it got as far as delivering.
func (l *Local) follow(ctx context.Context, host kurabe.HostID, out chan<- Update) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Reports first: one whose assignment is missing afterwards has outlived it.
	reports, _, err := l.kv.List(ctx, store.InstanceReportPrefix(host))
	if err != nil {
		return false, err
	}
	prefix := store.AssignmentPrefix(host)
	entries, revision, err := l.kv.List(ctx, prefix)
	if err != nil {
		return false, err
	}
	update := Update{Full: true, Revision: revision, Withdrawn: outlived(reports, entries)}
	for _, e := range entries {
		l.add(&update, store.KeyEvent{Entry: e})
	}
	if !deliver(ctx, out, update) {
		return true, nil
	}
	for batch := range l.kv.Watch(ctx, prefix, revision+1) {
		if batch.Resync {
			return true, nil
		}
		update := Update{Revision: batch.Revision}
		for _, e := range batch.Events {
			l.add(&update, e)
		}
		if len(update.Assignments)+len(update.Withdrawn) > 0 && !deliver(ctx, out, update) {
			return true, nil
		}
	}
	return true, nil
}

// outlived lists the instances that have a report and no assignment: their agent
// was not there, or died, when it was to drop the report.
func outlived(reports, assignments []store.Entry) []kurabe.InstanceID {
	assigned := map[kurabe.InstanceID]bool{}
	for _, e := range assignments {
		if _, id, ok := store.AssignmentOf(e.Key); ok {
			assigned[id] = true
		}
	}
	var left []kurabe.InstanceID
	for _, e := range reports {
		if _, id, ok := store.InstanceReportOf(e.Key); ok && !assigned[id] {
			left = append(left, id)
		}
	}
	return left
}

// add puts one event into an update. A record that cannot be read is left out:
// the agent keeps to what it was told last, and the store's view reports it.
func (l *Local) add(u *Update, e store.KeyEvent) {
	_, id, ok := store.AssignmentOf(e.Key)
	if !ok {
		return
	}
	if e.Deleted {
		u.Withdrawn = append(u.Withdrawn, id)
		return
	}
	a, err := store.DecodeAssignment(e.Entry)
	if err != nil {
		l.log.Error("assignment cannot be read", logkey.Instance, string(id), logkey.Error, err)
		return
	}
	u.Assignments = append(u.Assignments, a)
}

func deliver(ctx context.Context, out chan<- Update, u Update) bool {
	select {
	case out <- u:
		return true
	case <-ctx.Done():
		return false
	}
}

// PutReport implements Link.
func (l *Local) PutReport(ctx context.Context, r kurabe.InstanceReport) error {
	return l.commit(ctx, "put report", store.NewChange().PutReport(r))
}

// DropReport implements Link.
func (l *Local) DropReport(ctx context.Context, host kurabe.HostID, id kurabe.InstanceID) error {
	return l.commit(ctx, "drop report", store.NewChange().DropReport(host, id))
}

// PutHost implements Link.
func (l *Local) PutHost(ctx context.Context, h kurabe.HostReport) error {
	return l.commit(ctx, "put host report", store.NewChange().PutHost(h))
}

// PutCatalog implements Link.
func (l *Local) PutCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error {
	return l.commit(ctx, "put catalog", store.NewChange().PutCatalog(host, c))
}

// Sign implements Link.
func (l *Local) Sign(ctx context.Context, r SignRequest) (Certificate, error) {
	if err := ctx.Err(); err != nil {
		return Certificate{}, err
	}
	cert, err := l.signer.Sign(r.CSRPEM, r.IPs, r.DNSNames, certificateValidity)
	if err != nil {
		return Certificate{}, fmt.Errorf("sign: %w", err)
	}
	return Certificate{CertPEM: cert, CAPEM: l.signer.PEM()}, nil
}

func (l *Local) commit(ctx context.Context, what string, c *store.Change) error {
	if _, err := c.Commit(ctx, l.kv); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
