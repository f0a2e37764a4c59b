package engine

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/pki"
	"kurabe/internal/volume"
)

// Files below Home.TLSDir.
const (
	keyFile         = "server.key"
	certificateFile = "server.crt"
	authorityFile   = "ca.pem"
)

// renewBefore is how long before its end a certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// issueCertificate makes a fresh key and has it signed. The key never leaves
// the host. The certificate is written last: it is what makes the set current.
func (l *Lifecycle) issueCertificate(ctx context.Context, i Instance) error {
	keyPEM, csrPEM, err := pki.NewKeyAndCSR(i.CertificateName())
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	certificate, authority, err := l.c.Sign(ctx, csrPEM, i.clientsUse(), i.Names)
	if err != nil {
		return fmt.Errorf("have the certificate signed: %w", err)
	}
	if i.Role != nil {
		// One that does not serve its purpose would be asked for again at once, for ever.
		c, err := parseCertificate(certificate)
		if err == nil {
			err = i.fits(c)
		}
		if err != nil {
			return fmt.Errorf("have the certificate signed: %w", err)
		}
	}
	_, gid := owner(i.User)
	for _, f := range []struct {
		name string
		data []byte
	}{{keyFile, keyPEM}, {authorityFile, authority}, {certificateFile, certificate}} {
		if err := writeFor(filepath.Join(i.Home.TLSDir(), f.name), f.data, keyMode(), gid); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	return nil
}

// CertificateName is the common name that a certificate of the server is made with. The
// members of a group know each other by it, so it is the member's id there: a name can be
// changed, at another moment for each, and given to another instance.
func (i Instance) CertificateName() string {
	if i.Role == nil {
		return i.Name
	}
	return string(i.Instance)
}

// certificate says when the certificate on disk ends, and whether it is the one
// that the assignment needs.
func (l *Lifecycle) certificate(i Instance) (ends time.Time, current bool) {
	path := filepath.Join(i.Home.TLSDir(), certificateFile)
	data, err := volume.ReadFile(path)
	if _, gid := owner(i.User); err != nil || !readableBy(path, gid) {
		return time.Time{}, false
	}
	c, err := parseCertificate(data)
	if err != nil {
		return time.Time{}, false
	}
	return c.NotAfter, i.fits(c) == nil && l.c.Now().Before(c.NotAfter.Add(-renewBefore))
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("it is no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// fits says why a certificate cannot be the server's, nil when it can. Clients come to the
// endpoint, other members to where it listens, and a follower shows it to its source; the
// first server of an instance keeps the one that it has until it follows.
func (i Instance) fits(c *x509.Certificate) error {
	for _, address := range append(i.clientsUse(), i.Names...) {
		if err := c.VerifyHostname(address); err != nil {
			return err
		}
	}
	if i.Role == nil || i.Role.Duty != kurabe.DutyFollow && i.Role.Duty != kurabe.DutyDetached {
		return nil
	}
	return namesMember(c, i.CertificateName())
}

// clientsUse are the addresses by which the server is known: the endpoint, where it listens,
// and the reader endpoint of a cluster.
func (i Instance) clientsUse() []string {
	addresses := []string{i.Address}
	if i.Listens() != i.Address {
		addresses = append(addresses, i.Listens())
	}
	if i.ReaderAddress != "" {
		addresses = append(addresses, i.ReaderAddress)
	}
	return addresses
}

// namesMember says why a certificate cannot be shown to another server as that member's.
func namesMember(c *x509.Certificate, name string) error {
	switch {
	case c.Subject.CommonName != name:
		return fmt.Errorf("it is the certificate of %q, and %q is to show it", c.Subject.CommonName, name)
	case !slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return errors.New("it may not be shown to another server: it lacks the usage clientAuth")
	}
	return nil
}
