package engine

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kurabe/internal/pki"
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
	keyPEM, csrPEM, err := pki.NewKeyAndCSR(i.Name)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	certificate, authority, err := l.c.Sign(ctx, csrPEM, []string{i.Address}, nil)
	if err != nil {
		return fmt.Errorf("have the certificate signed: %w", err)
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

// certificate says when the certificate on disk ends, and whether it is the one
// that the assignment needs.
func (l *Lifecycle) certificate(i Instance) (ends time.Time, current bool) {
	path := filepath.Join(i.Home.TLSDir(), certificateFile)
	data, err := os.ReadFile(path)
	if _, gid := owner(i.User); err != nil || !readableBy(path, gid) {
		return time.Time{}, false
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}, false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return c.NotAfter, c.VerifyHostname(i.Address) == nil && l.c.Now().Before(c.NotAfter.Add(-renewBefore))
}
