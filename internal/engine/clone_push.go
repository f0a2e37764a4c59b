package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"kurabe"
	"kurabe/internal/pki"
	"kurabe/internal/volume"
)

// Feeder is a Replicator whose followers on other hosts cannot copy their source
// themselves: they ask its server for a copy (RoleView.Asks), and its host brings it.
type Feeder interface {
	// Feed makes a copy of the running server and sends it to one that asks and waits there.
	// Nothing of it is left when it returns.
	Feed(ctx context.Context, i Instance, r FeedRequest) error
}

// Ask is a follower that asks for a copy, and where it waits for it.
type Ask struct {
	ID kurabe.InstanceID
	At netip.AddrPort
}

// FeedRequest is what a driver needs to answer one.
type FeedRequest struct {
	Ask
	// Dir is for the copy, absent.
	Dir string
	// Certificate has one that names this server as a member, CAFile is the authority's.
	Certificate       func(ctx context.Context) (tls.Certificate, error)
	CAFile            string
	BytesPerSecondMax int64
}

// FeedDir holds the copies for followers on other hosts, each only while it is sent.
func (h Home) FeedDir() string { return filepath.Join(h.Dir, "feed") }

// Feed brings a copy of a running server to one of its followers. At most one for each is
// under way; the caller sees to that.
func (l *Lifecycle) Feed(ctx context.Context, a kurabe.Assignment, to Ask) error {
	f, ok := l.c.Driver.(Feeder)
	if !ok || a.Role == nil || !slices.Contains(a.Role.Followers, to.ID) {
		return fmt.Errorf("send a copy to %s: it is no follower of %s", to.ID, a.Instance)
	}
	i, err := l.instanceWithNotes(a)
	if err != nil {
		return err
	}
	l.feeds(i.Instance, 1)
	defer l.feeds(i.Instance, -1)
	r := FeedRequest{
		Ask: to, Dir: filepath.Join(i.Home.FeedDir(), string(to.ID)), CAFile: i.authority(), BytesPerSecondMax: l.c.CopyBytesPerSecondMax,
		Certificate: func(ctx context.Context) (tls.Certificate, error) { return l.memberCertificate(ctx, i) },
	}
	if err := volume.Mkdir(i.Home.FeedDir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("feed %s: %w", to.ID, err)
	}
	err = volume.RemoveTree(i.Home.FeedDir(), r.Dir)
	if err == nil {
		err = f.Feed(ctx, i, r)
	}
	if err = errors.Join(err, volume.RemoveTree(i.Home.FeedDir(), r.Dir)); err != nil {
		return fmt.Errorf("feed %s: %w", to.ID, err)
	}
	return nil
}

// memberCertificate is one that names the server as followers know it. The first server of
// an instance has none, as it keeps the one that it was born with until it follows: it gets
// one for the occasion, in memory, so that its own, which it may need to start, need not be
// made anew.
func (l *Lifecycle) memberCertificate(ctx context.Context, i Instance) (tls.Certificate, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(i.Home.TLSDir(), certificateFile), filepath.Join(i.Home.TLSDir(), keyFile))
	if err == nil && namesMember(own.Leaf, i.CertificateName()) == nil {
		return own, nil
	}
	key, csr, err := pki.NewKeyAndCSR(i.CertificateName())
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	certificate, _, err := l.c.Sign(ctx, csr, []string{i.Listens()}, nil)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("request a certificate: %w", err)
	}
	return tls.X509KeyPair(certificate, key)
}

// feeds counts the feeds of an instance.
func (l *Lifecycle) feeds(id kurabe.InstanceID, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeding[id] += more
	if l.feeding[id] == 0 {
		delete(l.feeding, id)
	}
}

// sweepFeeds removes what a service that died has left.
func (l *Lifecycle) sweepFeeds(i Instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feeding[i.Instance] > 0 || !exists(i.Home.FeedDir()) {
		return nil
	}
	return volume.RemoveTree(i.Home.Dir, i.Home.FeedDir())
}
