package hostlink

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
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

// Reveal opens a version of a secret, given by its ARN.
type Reveal func(ctx context.Context, arn string, version kurabe.SecretVersionID) (logkey.Secret, error)

// Local is a Link inside the server's own process.
type Local struct {
	kv     store.KV
	signer Signer
	log    *slog.Logger
	reveal Reveal
}

// RevealBy has it open secrets so. Call it before the Link is used.
func (l *Local) RevealBy(reveal Reveal) *Local {
	l.reveal = reveal
	return l
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
	full, revisions := Update{Full: true}, map[kurabe.Kind]int64{}
	// The last kind first: a snapshot was ordered after its server was assigned.
	for _, kind := range slices.Backward(kurabe.Kinds) {
		events, revision, err := l.assigned(ctx, store.ThingReportPrefix(host, kind), store.AssignmentPrefix(host, kind))
		if err != nil {
			return false, err
		}
		l.add(&full, events)
		revisions[kind] = revision
	}
	if !deliver(ctx, out, full) {
		return true, nil
	}
	batches := make(chan store.Batch)
	for kind, revision := range revisions {
		go func() { // ends with ctx
			for batch := range l.kv.Watch(ctx, store.AssignmentPrefix(host, kind), revision+1) {
				select {
				case batches <- batch:
				case <-ctx.Done():
					return
				}
			}
			cancel()
		}()
	}
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case batch := <-batches:
			if batch.Resync {
				return true, nil
			}
			var update Update
			if l.add(&update, batch.Events); !update.empty() && !deliver(ctx, out, update) {
				return true, nil
			}
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

// add puts events into an update. A record that cannot be read is left out: the agent keeps to
// what it was told last, and the store's view reports it.
func (l *Local) add(u *Update, events []store.KeyEvent) {
	for _, e := range events {
		ref, ok := store.AssignmentOf(e.Key)
		switch {
		case !ok:
		case e.Deleted:
			u.Withdrawn = append(u.Withdrawn, ref)
		default:
			a, err := store.DecodeAssignment(e.Entry)
			if err != nil {
				l.log.Error("assignment cannot be read", "kind", string(ref.Kind), "id", ref.ID, logkey.Error, err)
				continue
			}
			u.Orders = append(u.Orders, a)
		}
	}
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
func (l *Local) PutReport(ctx context.Context, r kurabe.Word) error {
	return l.commit(ctx, "put report", store.NewChange().PutReport(r))
}

// DropReport implements Link.
func (l *Local) DropReport(ctx context.Context, host kurabe.HostID, ref kurabe.Ref) error {
	return l.commit(ctx, "drop report", store.NewChange().DropReport(host, ref))
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

// ProxyUsers implements Link. A secret without a user's name and password is left out: the
// others' users may log in.
func (l *Local) ProxyUsers(ctx context.Context, host kurabe.HostID, id kurabe.ProxyID) ([]ProxyUser, error) {
	e, err := l.kv.Get(ctx, store.AssignmentPrefix(host, kurabe.KindProxy)+string(id))
	if err != nil {
		return nil, err
	}
	if e.ModRevision == 0 || l.reveal == nil {
		return nil, fmt.Errorf("%w: host %s has no proxy %.40q", ErrRefused, host, id)
	}
	w, err := store.DecodeAssignment(e)
	if err != nil {
		return nil, err
	}
	users := []ProxyUser{}
	for _, s := range w.(kurabe.ProxyAssignment).Secrets {
		text, err := l.reveal(ctx, s.ARN, s.Version)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", s.ARN, err)
		}
		var u struct {
			Name     string        `json:"username"`
			Password logkey.Secret `json:"password"`
		}
		if err := json.Unmarshal([]byte(text.Reveal()), &u); err == nil && u.Name != "" {
			users = append(users, ProxyUser(u))
		}
	}
	return users, nil
}

func (l *Local) commit(ctx context.Context, what string, c *store.Change) error {
	if _, err := c.Commit(ctx, l.kv); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
