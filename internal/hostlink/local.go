package hostlink

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
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
	// retryPauseOfSeveral takes the place of the latter where another server may answer.
	retryPauseOfSeveral = 250 * time.Millisecond
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

// follow delivers the whole set, then changes, until a watch breaks. It says
// whether it got as far as delivering.
func (l *Local) follow(ctx context.Context, host kurabe.HostID, out chan<- Update) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Snapshots first: each was ordered after its instance was assigned.
	snapshots, snapshotRevision, err := l.assigned(ctx, store.SnapshotReportPrefix(host), store.SnapshotAssignmentPrefix(host))
	if err != nil {
		return false, err
	}
	instances, instanceRevision, err := l.assigned(ctx, store.InstanceReportPrefix(host), store.AssignmentPrefix(host))
	if err != nil {
		return false, err
	}
	if !deliver(ctx, out, l.update(true, append(instances, snapshots...))) {
		return true, nil
	}
	ofInstances := l.kv.Watch(ctx, store.AssignmentPrefix(host), instanceRevision+1)
	ofSnapshots := l.kv.Watch(ctx, store.SnapshotAssignmentPrefix(host), snapshotRevision+1)
	for {
		var batch store.Batch
		var ok bool
		select {
		case batch, ok = <-ofInstances:
		case batch, ok = <-ofSnapshots:
		}
		if !ok || batch.Resync {
			return true, nil
		}
		if update := l.update(false, batch.Events); !update.empty() && !deliver(ctx, out, update) {
			return true, nil
		}
	}
}

// assigned reads the assignments under a prefix as events. A report without an
// assignment is told as the end of one: its agent was not there, or died, when it
// was to drop the report.
func (l *Local) assigned(ctx context.Context, reports, assignments string) ([]store.KeyEvent, int64, error) {
	// Reports first: one whose assignment is missing afterwards has outlived it.
	reported, _, err := l.kv.List(ctx, reports)
	if err != nil {
		return nil, 0, err
	}
	entries, revision, err := l.kv.List(ctx, assignments)
	if err != nil {
		return nil, 0, err
	}
	var events []store.KeyEvent
	have := map[string]bool{}
	for _, e := range entries {
		have[strings.TrimPrefix(e.Key, assignments)] = true
		events = append(events, store.KeyEvent{Entry: e})
	}
	for _, e := range reported {
		if id := strings.TrimPrefix(e.Key, reports); !have[id] {
			events = append(events, store.KeyEvent{Entry: store.Entry{Key: assignments + id}, Deleted: true})
		}
	}
	return events, revision, nil
}

// update makes an update of events. A record that cannot be read is left out: the
// agent keeps to what it was told last, and the store's view reports it.
func (l *Local) update(full bool, events []store.KeyEvent) Update {
	u := Update{Full: full}
	for _, e := range events {
		if _, id, ok := store.AssignmentOf(e.Key); ok {
			if err := add(&u.Assignments, &u.Withdrawn, id, e, store.DecodeAssignment); err != nil {
				l.log.Error("assignment cannot be read", logkey.Instance, id, logkey.Error, err)
			}
		}
		if _, id, ok := store.SnapshotAssignmentOf(e.Key); ok {
			if err := add(&u.Snapshots, &u.WithdrawnSnapshots, id, e, store.DecodeSnapshotAssignment); err != nil {
				l.log.Error("assignment cannot be read", logkey.Snapshot, id, logkey.Error, err)
			}
		}
	}
	return u
}

// add puts one event into one of two lists.
func add[A any, ID ~string](given *[]A, withdrawn *[]ID, id ID, e store.KeyEvent, decode func(store.Entry) (A, error)) error {
	if e.Deleted {
		*withdrawn = append(*withdrawn, id)
		return nil
	}
	a, err := decode(e.Entry)
	if err == nil {
		*given = append(*given, a)
	}
	return err
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

// PutSnapshotReport implements Link.
func (l *Local) PutSnapshotReport(ctx context.Context, r kurabe.SnapshotReport) error {
	return l.commit(ctx, "put snapshot report", store.NewChange().PutSnapshotReport(r))
}

// DropSnapshotReport implements Link.
func (l *Local) DropSnapshotReport(ctx context.Context, host kurabe.HostID, id kurabe.SnapshotID) error {
	return l.commit(ctx, "drop snapshot report", store.NewChange().DropSnapshotReport(host, id))
}

// PutLogs implements Link.
func (l *Local) PutLogs(ctx context.Context, r kurabe.LogReport) error {
	return l.commit(ctx, "put log report", store.NewChange().PutLogs(r))
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
