package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// csrBytesMax bounds a request; an RSA-4096 one is 2 KB.
const csrBytesMax = 16 << 10

// namesMax bounds the addresses and names of one certificate.
const namesMax = 100

// commonNameMax is X.509's bound of a common name, in characters.
const commonNameMax = 64

// NewKeyAndCSR makes a key and a request for a certificate for it, both in PEM.
// The key stays on the host.
func NewKeyAndCSR(name string) (keyPEM, csrPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	keyPEM, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	csrPEM, err = CSR(keyPEM, name)
	return keyPEM, csrPEM, err
}

// CSR makes a request for a certificate for a key of NewKeyAndCSR.
func CSR(keyPEM []byte, name string) ([]byte, error) {
	key, err := decodeKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName(name)}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Sign returns a certificate, in PEM, for the key of a request. Only the key and
// the common name are taken from the request; the addresses and names are the
// caller's. A validity that would outlive the authority is cut.
//
// It serves a server, and also as that server's own when it connects to another:
// members of a group let each other in by the common name. Whoever calls Sign for
// others must see to it that they ask for none but their own.
func (ca *CA) Sign(csrPEM []byte, ips []net.IP, dnsNames []string, validity time.Duration) ([]byte, error) {
	csr, err := parseRequest(csrPEM)
	if err != nil {
		return nil, err
	}
	if len(ips)+len(dnsNames) == 0 || len(ips)+len(dnsNames) > namesMax {
		return nil, fmt.Errorf("pki: a certificate for %d addresses and names; from 1 to %d", len(ips)+len(dnsNames), namesMax)
	}
	if slices.ContainsFunc(dnsNames, reserved) {
		return nil, fmt.Errorf("pki: names below %s are reserved for servers of the service", partyDomain)
	}
	if validity <= 0 || validity > ValidityMax {
		return nil, fmt.Errorf("pki: validity %s; at most %s", validity, ValidityMax)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: commonName(csr.Subject.CommonName)}, IPAddresses: ips, DNSNames: dnsNames,
	}
	return ca.issue(template, csr.PublicKey, validity)
}

// reserved says that a name would match one of a party: in any case, with a dot at the end
// or with a star in it.
func reserved(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return strings.HasSuffix(name, partyDomain)
}

// issue signs what both ends of a connection can be.
func (ca *CA) issue(template *x509.Certificate, key any, validity time.Duration) ([]byte, error) {
	now := time.Now()
	notAfter := now.Add(validity)
	if notAfter.After(ca.cert.NotAfter) {
		notAfter = ca.cert.NotAfter
	}
	notBefore := now.Add(-clockSkew)
	// The whole period counts for clients, the margin included.
	if notAfter.Sub(notBefore) > ValidityMax {
		notAfter = notBefore.Add(ValidityMax)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = newSerial(), notBefore, notAfter
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// parseRequest reads a request and checks that its sender holds the key.
func parseRequest(csrPEM []byte) (*x509.CertificateRequest, error) {
	if len(csrPEM) > csrBytesMax {
		return nil, fmt.Errorf("pki: certificate request of %d bytes; at most %d", len(csrPEM), csrBytesMax)
	}
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("pki: not a certificate request in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("pki: read certificate request: %w", err)
	}
	if !fitKey(csr.PublicKey) {
		return nil, errors.New("pki: certificate request with a weak or unknown kind of key")
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("pki: certificate request: %w", err)
	}
	return csr, nil
}

// fitKey says whether a key is one that we sign. It is asked before the signature by the key
// itself is checked: a key of any size costs nothing then.
func fitKey(public any) bool {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384()}, key.Curve)
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048 && key.N.BitLen() <= 4096
	}
	return false
}

// commonName cuts a name to what a certificate can hold; clients look at the
// alternative names only.
func commonName(name string) string {
	if r := []rune(name); len(r) > commonNameMax {
		return string(r[:commonNameMax])
	}
	return name
}

// SignDocumentKey returns a certificate, in PEM, for a key that signs documents and no
// connection: no TLS client takes it for a server's.
func (ca *CA) SignDocumentKey(key *rsa.PublicKey, name string) ([]byte, error) {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: commonName(name)},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(ValidityMax), KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
