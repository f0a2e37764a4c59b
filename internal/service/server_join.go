package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/store"
	"kurabe/internal/volume"
)

const (
	// enterPause is how soon a service is asked again that could not take a server in yet:
	// its own servers count as heard after five seconds.
	enterPause = time.Second
	// enterTime bounds that.
	enterTime = time.Minute
	// joinKeyFile keeps the key that a server joins with, until it has joined.
	joinKeyFile = "join-key.pem"
)

// enterServers finds out whether this server is one of several, and has it join at first.
// It changes the flags to what the service has.
func (s *Service) enterServers(ctx context.Context, f *Config, data string) error {
	var err error
	if s.servers, err = loadServers(data); err != nil {
		return err
	}
	switch {
	case f.Join != "" && s.servers != nil && (hasState(data) || s.external != nil):
		return fmt.Errorf("%s has joined a service already: start it without --join; to join anew, remove its server and take an empty folder", data)
	case f.Join != "" && s.servers == nil:
		if err := s.joinServers(ctx, f, data); err != nil {
			return fmt.Errorf("join the service at %s: %w", f.Join, err)
		}
	case s.servers != nil && s.external == nil && !hasState(data):
		// A join that was cut, after the last word of the service had arrived, or a state that
		// a person has put aside since the service has another one.
		ca, err := pki.Open(filepath.Join(data, "pki"))
		if err != nil {
			return err
		}
		identity, err := ca.ServerIdentity(string(s.hostFile.ID), pki.ValidityMax)
		if err != nil {
			return err
		}
		answer, err := s.enterAny(ctx, s.servers.Links, ca.PEM(), identity)
		if err != nil {
			return fmt.Errorf("go on to join the service: %w", err)
		}
		s.cluster = answer.Cluster
	}
	os.Unsetenv(JoinTokenVariable) // databases need not inherit it
	if s.servers == nil {
		return f.checkZones()
	}
	if f.HostListen == "" {
		return errors.New("the service has several servers, which reach each other at --host-listen: name it, as before")
	}
	return f.adopt(s.servers)
}

// joinServers asks the service to let this server in.
func (s *Service) joinServers(ctx context.Context, f *Config, data string) error {
	for _, file := range []string{"etcd", externalEtcdFile, "pki/ca.key", "link/" + joinedFile} {
		if _, err := os.Stat(filepath.Join(data, file)); err == nil && !s.cutJoin(data) {
			return fmt.Errorf("%s is in use by a service or an agent already: a server that joins needs an empty folder", data)
		}
	}
	link, peer, err := f.places()
	if err != nil {
		return err
	}
	if f.Zone == "" {
		return errors.New("name the zone of this machine with --zone")
	}
	token, err := readToken(f.TokenFile)
	if err != nil {
		return err
	}
	state := ""
	if s.external != nil {
		if state, err = s.external.reach(ctx); err != nil {
			return err
		}
	}
	keyPEM, csrPEM, err := keptKey(filepath.Join(data, joinKeyFile), string(s.hostFile.ID))
	if err != nil {
		return err
	}
	zones := strings.Split(f.Zone, ",")
	answer, root, err := hostlink.Join(ctx, f.Join, token, hostlink.JoinRequest{
		Host: s.hostFile.ID, Zones: zones, CSRPEM: csrPEM,
		Server: &hostlink.ServerRequest{ServerPlace: kurabe.ServerPlace{Link: link, Peer: peer}, Layout: store.Layout, State: state},
	})
	if err != nil {
		return err
	}
	identity, err := tls.X509KeyPair(answer.CertPEM, keyPEM)
	if err != nil {
		return err
	}
	entered, err := s.enterAny(ctx, []string{f.Join}, root, identity)
	if err != nil {
		return err
	}
	return s.settle(data, zones, entered)
}

// cutJoin says that a join in this folder got its answer, and not to its end.
func (s *Service) cutJoin(data string) bool {
	_, err := os.Stat(filepath.Join(data, joinKeyFile))
	return err == nil && !hasState(data)
}

// enterAny asks servers for what a server needs, until one gives it.
func (s *Service) enterAny(ctx context.Context, links []string, root []byte, identity tls.Certificate) (hostlink.EnterAnswer, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	ctx, cancel := context.WithTimeout(ctx, enterTime)
	defer cancel()
	for {
		var errs []error
		for _, link := range links {
			a, err := hostlink.Enter(ctx, link, roots, identity)
			if err == nil || errors.Is(err, hostlink.ErrRefused) {
				return a, err
			}
			errs = append(errs, err)
		}
		s.log.Info("the service does not take this server in yet, asked again", logkey.Reason, errors.Join(errs...))
		select {
		case <-time.After(enterPause):
		case <-ctx.Done():
			return hostlink.EnterAnswer{}, errors.Join(errs...)
		}
	}
}

// settle keeps what the service has told. The list of servers is the last to be written.
func (s *Service) settle(data string, zones []string, a hostlink.EnterAnswer) error {
	if err := pki.Adopt(filepath.Join(data, "pki"), a.CAKeyPEM, a.CAPEM); err != nil {
		return err
	}
	root := Credentials{a.AccessKey, logkey.Secret(a.SecretKey)}
	if err := root.save(data); err != nil {
		return err
	}
	s.cluster = a.Cluster
	s.servers = &servers{
		path: filepath.Join(data, serversFile), Links: a.Servers, Joined: true,
		Region: a.Region, ScopeRegion: a.ScopeRegion, Account: a.Account, Zones: a.Zones, OwnZones: zones,
	}
	if err := s.servers.save(); err != nil {
		return err
	}
	s.log.Info("joined the service", logkey.Host, string(s.hostFile.ID), "servers", a.Servers, "zones", zones)
	return volume.RemoveSpared(filepath.Join(data, joinKeyFile))
}

// adopt changes the flags to what the service has. What was said otherwise is refused.
func (f *Config) adopt(s *servers) error {
	if s.Joined {
		for _, c := range []struct{ flag, said, is string }{
			{"region", f.Region, s.Region}, {"account", f.Account, s.Account}, {"zones", f.Zones, strings.Join(s.Zones, ",")},
			{"zone", f.Zone, strings.Join(s.OwnZones, ",")},
		} {
			if f.Given(c.flag) && c.said != c.is {
				return fmt.Errorf("--%s %s: the service that this server has joined has %s", c.flag, c.said, c.is)
			}
		}
		f.Region, f.Account, f.Zones, f.Zone = s.Region, s.Account, strings.Join(s.Zones, ","), strings.Join(s.OwnZones, ",")
		f.joinedScope = &s.ScopeRegion
	}
	return f.checkZones()
}

// places are where others reach this server: its links, and its member of the state store.
func (f *Config) places() (link, peer string, err error) {
	if f.HostListen == "" {
		return "", "", errors.New("a service of several servers needs --host-listen ADDRESS:PORT on each: there hosts and other servers reach it")
	}
	if link, err = reachable("--host-listen", f.HostListen); err != nil {
		return "", "", err
	}
	switch {
	case f.Etcd.Given() && f.PeerListen != "":
		return "", "", errors.New("--peer-listen is for a state store of the servers' own, not for --etcd-endpoints")
	case f.Etcd.Given():
		return link, "", nil
	case f.PeerListen == "":
		peer, err = nextPort(link)
		return link, peer, err
	}
	peer, err = reachable("--peer-listen", f.PeerListen)
	return link, peer, err
}

// keptKey is a key that is made at first, and a request for its certificate.
func keptKey(path, name string) (keyPEM, csrPEM []byte, err error) {
	return (&identity{dir: filepath.Dir(path), host: name}).keyIn(path)
}

// sameServers says whether two lists name the same.
func sameServers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
