package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/volume"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Files below DATA/link. The key is made, and kept, before the service is asked: if its
// answer is lost, the same key may ask again. The last to be written is joinedFile.
const (
	firstKeyFile = "key.pem"
	identityFile = "identity.pem" // the certificate and its key
	rootFile     = "ca.pem"
	joinedFile   = "joined.json"
)

// joined is what a host keeps of the service that it belongs to.
type joined struct {
	Server  string   `json:"server"`            // HOST:PORT
	Servers []string `json:"servers,omitempty"` // those of all, where there are several
	Zones   []string `json:"zones"`
}

// identity is how a joined host and its service know each other.
type identity struct {
	dir     string
	host    string
	saved   joined
	rootPEM []byte
	roots   *x509.CertPool
	newest  atomic.Pointer[tls.Certificate]
}

func (i *identity) certificate() *tls.Certificate { return i.newest.Load() }

// enterService reads who we are, and joins the service at first.
func enterService(ctx context.Context, f *AgentConfig, data string, h hostFile, log *slog.Logger) (*identity, error) {
	i := &identity{dir: filepath.Join(data, "link"), host: string(h.ID)}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(i.dir, joinedFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := i.join(ctx, f); err != nil {
			return nil, err
		}
		log.Info("joined the service", logkey.Host, i.host, "server", i.saved.Server, "zones", i.saved.Zones)
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(raw, &i.saved); err != nil {
			return nil, fmt.Errorf("%s cannot be read (%w); restore it from a backup", filepath.Join(i.dir, joinedFile), err)
		}
		if zones := f.zones(); zones != nil && !slices.Equal(zones, i.saved.Zones) {
			return nil, fmt.Errorf("--zone %s: this machine has joined with %s; to change that, drain and remove it, and join with an empty data folder", f.Zone, strings.Join(i.saved.Zones, ","))
		}
	}
	if err := i.load(); err != nil {
		return nil, err
	}
	if ends := i.certificate().Leaf.NotAfter; time.Now().After(ends) {
		log.Warn("this machine was away for too long: its certificate has ended, and it joins anew", "ended", ends)
		if err := i.join(ctx, f); err != nil {
			return nil, err
		}
		return i, i.load()
	}
	if f.Join == "" || f.Join == i.saved.Server {
		return i, nil
	}
	i.saved.Server = f.Join
	return i, i.save()
}

// join asks the service to let us in.
func (i *identity) join(ctx context.Context, f *AgentConfig) error {
	token, err := f.token()
	if err != nil {
		return err
	}
	again := joined{Server: f.Join, Zones: f.zones()}
	if again.Server == "" {
		again.Server = i.saved.Server
	}
	if again.Zones == nil {
		again.Zones = i.saved.Zones
	}
	if again.Server == "" || again.Zones == nil {
		return errors.New("this machine has not joined yet: name the service with --join HOST:PORT, and the zone of this machine with --zone")
	}
	keyPEM, csrPEM, err := i.firstKey()
	if err != nil {
		return err
	}
	i.saved = again
	answer, root, err := hostlink.Join(ctx, i.saved.Server, token, hostlink.JoinRequest{Host: kurabe.HostID(i.host), Zones: i.saved.Zones, CSRPEM: csrPEM})
	if err != nil {
		return fmt.Errorf("join the service at %s: %w", i.saved.Server, err)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{rootFile, root}, {identityFile, append(answer.CertPEM, keyPEM...)}} {
		if err := volume.AtomicWrite(filepath.Join(i.dir, file.name), file.data, 0o600); err != nil {
			return err
		}
	}
	return i.save()
}

// firstKey is the key that we join with, and a request for its certificate.
func (i *identity) firstKey() (keyPEM, csrPEM []byte, err error) {
	return i.keyIn(filepath.Join(i.dir, firstKeyFile))
}

func (i *identity) keyIn(path string) (keyPEM, csrPEM []byte, err error) {
	keyPEM, err = os.ReadFile(path)
	if err == nil {
		csrPEM, err = pki.CSR(keyPEM, i.host)
		return keyPEM, csrPEM, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if keyPEM, csrPEM, err = pki.NewKeyAndCSR(i.host); err != nil {
		return nil, nil, err
	}
	return keyPEM, csrPEM, volume.AtomicWrite(path, keyPEM, 0o600)
}

func (i *identity) save() error {
	raw, err := json.Marshal(i.saved)
	if err != nil {
		return err
	}
	return volume.AtomicWrite(filepath.Join(i.dir, joinedFile), raw, 0o600)
}

// learned keeps where the servers are.
func (i *identity) learned(log *slog.Logger) func([]string) {
	return func(all []string) {
		i.saved.Servers = all
		if err := i.save(); err != nil {
			log.Warn("list of servers not kept", logkey.Error, err)
		}
	}
}

// load reads certificate and authority.
func (i *identity) load() error {
	var err error
	if i.rootPEM, err = os.ReadFile(filepath.Join(i.dir, rootFile)); err != nil {
		return err
	}
	i.roots = x509.NewCertPool()
	if !i.roots.AppendCertsFromPEM(i.rootPEM) {
		return fmt.Errorf("%s: no certificate in it", filepath.Join(i.dir, rootFile))
	}
	raw, err := os.ReadFile(filepath.Join(i.dir, identityFile))
	if err != nil {
		return err
	}
	return i.use(raw)
}

func (i *identity) use(pem []byte) error {
	c, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(i.dir, identityFile), err)
	}
	i.newest.Store(&c)
	return nil
}

// The certificate is looked at so often; one that could not be renewed waits as long.
const certificateLook = time.Hour

// keepFresh renews the certificate when half of its time is over, until ctx ends.
func (i *identity) keepFresh(ctx context.Context, link *hostlink.Remote, log *slog.Logger) error {
	for {
		if c := i.certificate().Leaf; time.Now().After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 2)) {
			if err := i.renew(ctx, link); err != nil && ctx.Err() == nil {
				log.Warn("certificate of this host not renewed, tried again", logkey.Error, err, "ends", c.NotAfter)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(certificateLook):
		}
	}
}

func (i *identity) renew(ctx context.Context, link *hostlink.Remote) error {
	keyPEM, csrPEM, err := pki.NewKeyAndCSR(i.host)
	if err != nil {
		return err
	}
	cert, err := link.Renew(ctx, csrPEM)
	if err != nil {
		return err
	}
	both := append(cert, keyPEM...)
	if _, err := tls.X509KeyPair(both, both); err != nil {
		return fmt.Errorf("the service has sent another one's certificate: %w", err)
	}
	if err := volume.AtomicWrite(filepath.Join(i.dir, identityFile), both, 0o600); err != nil {
		return err
	}
	return i.use(both)
}

// lifeOf tells this data folder on this machine, until it is started anew, from a copy of it.
func machineID(data string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d:%d", strings.TrimSpace(string(boot)), st.Dev, st.Ino), nil
}

// lifeFile, below DATA/link, has the life in which this host was heard last.
const machineIDFile = "life"

// doubleTime is how long a start waits for the place of its host: the service has to miss what
// this machine was before, also when that has announced to be away.
const doubleTime = awayTime + firstTime + 5*time.Second

// takePlace makes sure that this machine is the host that its folder says, before any database
// is touched: a folder that was not used in this life may be a copy. While the service is not
// reached nobody can tell, and the databases are what matters: it is waited for so long.
func (n *Agent) takePlace(ctx context.Context, life string, within time.Duration) error {
	path := filepath.Join(n.self.dir, machineIDFile)
	last, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(last) == life {
		return nil
	}
	err = n.link.Place(ctx, within, doubleTime)
	if errors.Is(err, hostlink.ErrDouble) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		n.log.Warn("service not reachable; the agent keeps running the databases", logkey.Error, err)
		return nil
	}
	return volume.AtomicWrite(path, []byte(life), 0o600)
}
