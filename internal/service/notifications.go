package service

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/control/topic"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics"
	"kurabe/internal/notify"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// The variables of the environment with the login for the mail server.
const (
	SMTPUserVariable     = "KURABE_SMTP_USER"
	SMTPPasswordVariable = "KURABE_SMTP_PASSWORD"
)

// NotifyConfig is how notifications are sent.
type NotifyConfig struct {
	PublicURL                             string
	Allow                                 []string
	SMTPServer, SMTPFrom, SMTPCredentials string

	allow []netip.Prefix // of Allow
	mail  notify.Mail
}

func (f *NotifyConfig) check() error {
	if f.PublicURL != "" {
		u, err := url.Parse(f.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("--public-url %q is not http://HOST:PORT or https://HOST:PORT", f.PublicURL)
		}
	}
	for _, text := range f.Allow {
		p, err := netip.ParsePrefix(text)
		if address, failed := netip.ParseAddr(text); failed == nil {
			p, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return fmt.Errorf("--notify-allow %q is no address and no network such as 10.0.0.0/8", text)
		}
		f.allow = append(f.allow, p)
	}
	var err error
	if f.mail, err = f.login(); err != nil {
		return err
	}
	return f.mail.Check()
}

// login returns the mail server with its login.
func (f *NotifyConfig) login() (notify.Mail, error) {
	m := notify.Mail{Server: f.SMTPServer, From: f.SMTPFrom, User: os.Getenv(SMTPUserVariable), Password: logkey.Secret(os.Getenv(SMTPPasswordVariable))}
	if f.SMTPCredentials == "" {
		return m, nil
	}
	text, err := os.ReadFile(f.SMTPCredentials)
	if err != nil {
		return m, fmt.Errorf("--smtp-login-file: %w", err)
	}
	user, password, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !ok || user == "" {
		return m, errors.New("--smtp-login-file holds no USER:PASSWORD")
	}
	m.User, m.Password = user, logkey.Secret(password)
	return m, nil
}

// newNotifications makes what delivers notifications, and the use cases of topics.
func (s *Service) newNotifications(f *Config, data string, kv store.KV, ca *pki.CA, at net.Addr) {
	base := strings.TrimSuffix(f.Notify.PublicURL, "/")
	if base == "" {
		base = "http://" + advertised(at)
	}
	guard := notify.AddressGuard{Allow: f.Notify.allow, OwnPorts: s.ownPorts(at), OwnAddresses: topic.OwnAddresses}
	s.topics = topic.Topics{
		Scope: scope.New(scope.Scope{KV: kv, View: s.view, Region: f.Region, Account: f.Account, Now: time.Now}), Guard: guard, Mail: f.Notify.mail.Server != "",
	}
	s.deliverer = notify.New(notify.Config{
		KV: kv, View: s.view, Log: s.log, Now: time.Now, URL: base, Guard: guard, Mail: f.Notify.mail,
		OpenSigner: func(ctx context.Context) (*notify.Signer, error) {
			return openSigner(ctx, filepath.Join(data, "pki"), base, kv, s.view, ca)
		},
	})
}

// advertised is the address of a listener for others: one that listens everywhere is known by the
// name of its machine.
func advertised(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// ownPorts are those that the service listens at on this machine.
func (s *Service) ownPorts(at net.Addr) (ports []int) {
	if tcp, ok := at.(*net.TCPAddr); ok {
		ports = append(ports, tcp.Port)
	}
	if s.entrance != nil {
		if tcp, ok := s.entrance.listener.Addr().(*net.TCPAddr); ok {
			ports = append(ports, tcp.Port, tcp.Port+1)
		}
	}
	return ports
}

// certificatePath is below which the certificates of the keys that sign notifications are.
const certificatePath = "/sns/"

// renewBefore is how long before its end a certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// openSigner opens the key of this host, and writes its certificate where every server finds it.
func openSigner(ctx context.Context, dir, base string, kv store.KV, view *store.View, ca *pki.CA) (*notify.Signer, error) {
	key, err := pki.DocumentKey(dir)
	if err != nil {
		return nil, err
	}
	url := "https://" + strings.TrimPrefix(strings.TrimPrefix(base, "http://"), "https://") + certificatePath
	change := store.NewChange()
	for _, c := range view.SigningCertificates() {
		block, _ := pem.Decode([]byte(c.Value.PEM))
		if c.Value.Until.Before(time.Now()) || block == nil {
			change.DeleteSigningCertificate(c.Value.Name)
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && key.PublicKey.Equal(cert.PublicKey) && time.Until(cert.NotAfter) > renewBefore {
			return &notify.Signer{Key: key, CertificateURL: url + c.Value.Name, Until: cert.NotAfter.Add(-renewBefore)}, nil
		}
	}
	text, err := ca.SignDocumentKey(&key.PublicKey, "Kurabe notifications")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	c := kurabe.SigningCertificate{Name: "SimpleNotificationService-" + hex.EncodeToString(sum[:16]) + ".pem", PEM: string(text), Until: time.Now().Add(pki.ValidityMax)}
	revision, err := change.PutSigningCertificate(c).Commit(ctx, kv)
	if err == nil {
		err = view.WaitRevision(ctx, revision)
	}
	return &notify.Signer{Key: key, CertificateURL: url + c.Name, Until: c.Until.Add(-renewBefore)}, err
}

// signingCertificate shows a certificate to whoever wants to check a notification.
func (s *Service) signingCertificate(w http.ResponseWriter, r *http.Request) {
	for _, c := range s.view.SigningCertificates() {
		if c.Value.Name == r.PathValue("name") {
			w.Header().Set("Content-Type", "application/x-pem-file")
			_, _ = w.Write([]byte(c.Value.PEM)) // who has gone wants none
			return
		}
	}
	say(w, http.StatusNotFound, "there is no such certificate")
}

// portCertificate makes the certificate with which the API's port speaks TLS, and another one
// before it ends: for the name and the addresses of this machine, and what clients call it.
func (s *Service) portCertificate(ca *pki.CA) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	var made *tls.Certificate // guarded by mu
	names := map[string]bool{"localhost": true}
	if host, err := os.Hostname(); err == nil {
		names[strings.ToLower(host)] = true
	}
	if u, err := url.Parse(s.deliverer.URL); err == nil {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil {
			names[strings.ToLower(u.Hostname())] = true
		}
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if made != nil && time.Until(made.Leaf.NotAfter) > renewBefore {
			return made, nil
		}
		const addressesMost = 64
		var ips []net.IP
		for _, a := range topic.OwnAddresses() {
			if len(ips) < addressesMost {
				ips = append(ips, net.IP(a.AsSlice()))
			}
		}
		keyPEM, csrPEM, err := pki.NewKeyAndCSR("Kurabe API")
		if err != nil {
			return nil, err
		}
		certPEM, err := ca.Sign(csrPEM, ips, slices.Sorted(maps.Keys(names)), pki.ValidityMax)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return nil, err
		}
		made = &pair
		return made, nil
	}
}

// addNotifications tells a page of what waits for subscribers, and of this server's deliveries.
func (s *Service) addNotifications(p metrics.Page) metrics.Page {
	counts := s.deliverer.Counts()
	p.Delivered, p.Failed, p.Unqueued = counts.Delivered, counts.Failed, counts.Unqueued
	for _, t := range s.view.Topics() {
		one := metrics.Topic{Name: t.Value.Name}
		one.Waiting, one.Bytes = s.view.QueueSize(t.Value.ID)
		for _, sub := range s.view.Subscriptions(t.Value.ID) {
			one.GivenUp += s.view.DeliveryCursor(sub.Value).GivenUp
		}
		p.Topics = append(p.Topics, one)
	}
	return p
}
