package etcdnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"kurabe/internal/logkey"
)

// Access says where an external etcd is, and by what we are let in.
type Access struct {
	Endpoints []string // URLs
	// CAFile has who signs etcd's certificates, "" for those that this machine trusts;
	// CertFile and KeyFile are what we show, read anew for each connection, so that they
	// can be renewed.
	CAFile, CertFile, KeyFile string
	User                      string
	Password                  logkey.Secret
}

// errFiles: a file of ours cannot be used.
var errFiles = errors.New("keys and certificates")

const (
	// A machine that was switched off is noticed by what it does not acknowledge, one that
	// is frozen by this question. gRPC asks no sooner than every ten seconds.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	// triesMax of a read go to one member after the other. etcd's own 100 would hide the
	// reason behind a time-out.
	triesMax = 3
	// reconnectPause is how soon a member that could not be reached is tried again, however
	// long it has been away. gRPC would wait for up to two minutes.
	reconnectPause = time.Second
)

// Check refuses what would be no safe place for the state: without TLS only what does not
// leave this machine.
func (a Access) Check() error {
	scheme := ""
	for _, text := range a.Endpoints {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Port() == "" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
			return fmt.Errorf("invalid endpoint %q; example: https://HOST:PORT", text)
		}
		switch {
		case u.User != nil:
			return errors.New("the URL contains a user: every user of this machine could read the password")
		case u.Scheme == "http" && !loopback(u.Hostname()):
			return fmt.Errorf("%s has no TLS: the state contains password verifiers and decides which server may write; use https, or an etcd on this machine", text)
		case scheme != "" && scheme != u.Scheme:
			return errors.New("endpoints must be all https or all http")
		}
		scheme = u.Scheme
	}
	switch {
	case scheme == "http" && a.CAFile+a.CertFile+a.KeyFile != "":
		return errors.New("certificates need https endpoints")
	case (a.CertFile == "") != (a.KeyFile == ""):
		return errors.New("a certificate needs its key, and a key its certificate")
	case (a.User == "") != (a.Password == ""):
		return errors.New("a user needs a password, and a password a user")
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// dial makes a client; it may not have reached anybody yet.
func (a Access) dial(ctx context.Context) (*clientv3.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := clientv3.Config{
		Endpoints: a.Endpoints, Username: a.User, Password: a.Password.Reveal(), DialTimeout: lookTime,
		DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout, PermitWithoutStream: true, MaxUnaryRetries: triesMax,
		// What the client complains of reaches us as errors.
		Logger: newLogger(slog.New(slog.DiscardHandler), newFatalHook()),
	}
	pauses := backoff.DefaultConfig
	pauses.BaseDelay, pauses.MaxDelay = reconnectPause/4, reconnectPause
	c.DialOptions = []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: lookTime})}
	if u, err := url.Parse(a.Endpoints[0]); err == nil && u.Scheme == "https" {
		if c.TLS, err = a.tls(); err != nil {
			return nil, fmt.Errorf("%w: %w", errFiles, err)
		}
	}
	return clientv3.New(c)
}

func (a Access) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
			return &cert, err
		}
	}
	if a.CAFile == "" {
		return c, nil
	}
	raw, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, err
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s: no certificate in it", a.CAFile)
	}
	return c, nil
}

// explain adds to an error what stands in the way of a connection: the client knows it, and
// tells of a time-out.
func (a Access) explain(ctx context.Context, err error) error {
	for _, text := range a.Endpoints {
		if reason := a.handshake(ctx, text); reason != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w (%w)", text, reason, err)
		}
	}
	return err
}

func (a Access) handshake(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer c.Close()
	if u.Scheme != "https" {
		return nil
	}
	t, err := a.tls()
	if err != nil {
		return err
	}
	t.ServerName, t.NextProtos = u.Hostname(), []string{"h2"}
	secure := tls.Client(c, t)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	// Of a certificate that is refused the other end tells afterwards; in order it begins to
	// speak itself.
	if err := c.SetReadDeadline(time.Now().Add(lookTime)); err != nil {
		return err
	}
	_, err = secure.Read(make([]byte, 1))
	return err
}
