package proxy

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/proxy/process"
)

// renewBefore is how long before its end a certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// clientsMax bounds the clients of an endpoint.
const clientsMax = 20_000

// configure writes the configuration that the assignment asks for, if it is another one.
func (w *worker) configure(ctx context.Context, a kurabe.ProxyAssignment) error {
	if w.config == nil {
		have, err := process.ReadConfig(w.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.Log.Warn("configuration of the proxy cannot be read, writing it anew", "error", err)
		}
		w.config = &have
	}
	want, err := w.wanted(ctx, a)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(*w.config, want) {
		return nil
	}
	owner, err := w.prepare()
	if err != nil {
		return err
	}
	faultpoint.Reach("before", "proxy-configuration")
	if err := want.Write(w.dir, owner); err != nil {
		return err
	}
	w.config = &want
	faultpoint.Reach("after", "proxy-configuration")
	return nil
}

// wanted is the configuration of an assignment. What the service alone can say, passwords and
// certificates, stays as it is while the service is away.
func (w *worker) wanted(ctx context.Context, a kurabe.ProxyAssignment) (process.Config, error) {
	c := process.Config{
		Name: a.Name, Engine: a.Engine, RequireTLS: a.RequireTLS, MaxServers: a.MaxServers, MaxIdle: a.MaxIdle,
		BorrowTimeout: time.Duration(a.BorrowTimeoutS) * time.Second, IdleClientTimeout: time.Duration(a.IdleClientTimeoutS) * time.Second,
		ClientsMax: clientsMax, ServerTLS: a.ServerTLS, InitQuery: a.InitQuery, DebugLogging: a.DebugLogging,
		ExcludeVariableSets: slices.Contains(a.PinningFilters, kurabe.ProxyFilterVariables),
	}
	for _, e := range a.Endpoints {
		at, err := netip.ParseAddr(e.Address)
		if err != nil {
			return c, err
		}
		c.Endpoints = append(c.Endpoints, process.Endpoint{Name: e.Name, Address: netip.AddrPortFrom(at, uint16(a.Port)), Reads: e.Reads})
	}
	if err := w.certify(ctx, a, &c); err != nil {
		return c, err
	}
	return c, w.fetchUsers(ctx, a, &c)
}

// certify gives the configuration a certificate for the addresses and names of its endpoints:
// that of before where it fits.
func (w *worker) certify(ctx context.Context, a kurabe.ProxyAssignment, c *process.Config) error {
	request := hostlink.SignRequest{DNSNames: a.Names}
	for _, e := range c.Endpoints {
		request.IPs = append(request.IPs, net.IP(e.Address.Addr().AsSlice()))
	}
	if fits(w.config.CertificatePEM, request, w.set.Host.Now()) {
		c.CertificatePEM, c.KeyPEM, c.AuthorityPEM = w.config.CertificatePEM, w.config.KeyPEM, w.config.AuthorityPEM
		return nil
	}
	key, csr, err := pki.NewKeyAndCSR(string(a.Proxy))
	if err != nil {
		return err
	}
	request.CSRPEM = csr
	signed, err := w.set.Host.Link.Sign(ctx, request)
	if err != nil {
		return fmt.Errorf("have the certificate signed: %w", err)
	}
	c.CertificatePEM, c.KeyPEM, c.AuthorityPEM = string(signed.CertPEM), string(key), string(signed.CAPEM)
	return nil
}

// fits says whether a certificate is for these addresses and names, and lasts.
func fits(text string, want hostlink.SignRequest, now time.Time) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil || now.After(c.NotAfter.Add(-renewBefore)) {
		return false
	}
	same := slices.EqualFunc(c.IPAddresses, want.IPs, func(a, b net.IP) bool { return a.Equal(b) })
	return same && slices.Equal(c.DNSNames, want.DNSNames)
}

// fetchUsers asks for the passwords of the secrets when they are other ones, or other
// versions, than those of the file.
func (w *worker) fetchUsers(ctx context.Context, a kurabe.ProxyAssignment, c *process.Config) error {
	c.Users, c.Secrets = w.config.Users, w.config.Secrets
	if slices.Equal(c.Secrets, a.Secrets) {
		return nil
	}
	fetched, err := w.set.Host.Link.ProxyUsers(ctx, w.set.Host.ID, a.Proxy)
	if err != nil {
		return fmt.Errorf("fetch the users: %w", err)
	}
	c.Users, c.Secrets = nil, a.Secrets
	for _, u := range fetched {
		c.Users = append(c.Users, process.User(u))
	}
	return nil
}
