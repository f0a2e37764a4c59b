package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Identifier is the name that the RDS API gives this authority.
const Identifier = "kurabe-ca-ecc256-g1"

const (
	caValidity = 10 * 365 * 24 * time.Hour
	// clockSkew is how far the clock of whoever is shown a certificate may be behind ours,
	// and still accept one that was just made: a host whose clock was set by a wrong time
	// zone, or by a battery that is empty by an evening. Until when it is good is not touched.
	clockSkew = 24 * time.Hour
	// ValidityMax is the longest that clients accept of a server certificate.
	ValidityMax = 825 * 24 * time.Hour

	keyFile  = "ca.key"
	certFile = "ca.pem"
)

// CA is the authority. It is safe for concurrent use.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Open reads the authority in dir, and makes it first when dir holds none. One
// that exists is never replaced: every client that trusts it would be lost. The
// caller must be the only one to open a new dir (the data folder's lock).
func Open(dir string) (*CA, error) {
	keyPEM, keyErr := os.ReadFile(filepath.Join(dir, keyFile))
	certPEM, certErr := os.ReadFile(filepath.Join(dir, certFile))
	switch {
	case errors.Is(keyErr, fs.ErrNotExist) && errors.Is(certErr, fs.ErrNotExist):
		return create(dir)
	case errors.Is(certErr, fs.ErrNotExist):
		// The key is written first: we died between the two, and no certificate
		// was ever handed out.
		return finish(dir, keyPEM)
	case keyErr != nil || certErr != nil:
		return nil, fmt.Errorf("open certificate authority in %s: %w", dir, errors.Join(keyErr, certErr))
	}
	if err := checkPrivate(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	return load(dir, keyPEM, certPEM)
}

func create(dir string) (*CA, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create certificate authority: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := writeNew(filepath.Join(dir, keyFile), keyPEM, 0o600); err != nil {
		return nil, fmt.Errorf("create certificate authority: %w", err)
	}
	return finish(dir, keyPEM)
}

// finish makes the root certificate of a key that is on disk.
func finish(dir string, keyPEM []byte) (*CA, error) {
	key, err := decodeKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, keyFile), err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "Kurabe Root CA ECC256 G1", Organization: []string{"Kurabe"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		// No intermediates: a leaked server key cannot sign for others.
		MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create root certificate: %w", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeNew(filepath.Join(dir, certFile), certPEM, 0o644); err != nil {
		return nil, fmt.Errorf("create root certificate: %w", err)
	}
	return load(dir, keyPEM, certPEM)
}

func load(dir string, keyPEM, certPEM []byte) (*CA, error) {
	key, err := decodeKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, keyFile), err)
	}
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("read %s: no certificate in it", filepath.Join(dir, certFile))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, certFile), err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("certificate authority in %s: the key %s does not match the certificate %s", dir, keyFile, certFile)
	}
	if !cert.IsCA || time.Now().After(cert.NotAfter) {
		return nil, fmt.Errorf("certificate authority in %s: not a root certificate, or expired at %s", dir, cert.NotAfter)
	}
	return &CA{cert: cert, key: key, pem: pem.EncodeToMemory(block)}, nil
}

// PEM returns the root certificate.
func (ca *CA) PEM() []byte { return append([]byte(nil), ca.pem...) }

// KeyPEM returns the private key, for another server of the service and nobody else.
func (ca *CA) KeyPEM() ([]byte, error) { return encodeKey(ca.key) }

// Derive returns a key of the service for a purpose. Every server has the same one, since every
// server has the authority's key, from which it is made and which it does not tell.
func (ca *CA) Derive(purpose string) (key [32]byte, err error) {
	secret, err := ca.key.Bytes()
	if err != nil {
		return key, fmt.Errorf("derive key: %w", err)
	}
	text, err := hkdf.Key(sha256.New, secret, nil, purpose, len(key))
	if err != nil {
		return key, fmt.Errorf("derive key: %w", err)
	}
	return [32]byte(text), nil
}

// Adopt keeps the authority of another server of the service in dir, which has none, or
// has the same one.
func Adopt(dir string, keyPEM, certPEM []byte) error {
	if have, err := os.ReadFile(filepath.Join(dir, certFile)); err == nil {
		if string(have) != string(certPEM) {
			return fmt.Errorf("adopt a certificate authority: %s already has one", dir)
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("adopt a certificate authority: %w", err)
	}
	// The key first, as create does; one without its certificate came from a join that was
	// cut, and is the same.
	for _, file := range []struct {
		name    string
		content []byte
		mode    os.FileMode
	}{{keyFile, keyPEM, 0o600}, {certFile, certPEM, 0o644}} {
		err := writeNew(filepath.Join(dir, file.name), file.content, file.mode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("adopt a certificate authority: %w", err)
		}
	}
	_, err := Open(dir)
	return err
}

// Info is what the RDS API says of an authority.
type Info struct {
	Identifier string
	Thumbprint string // SHA-1 of the certificate, in lower-case hex
	ValidFrom  time.Time
	ValidTill  time.Time
}

// Info describes the authority.
func (ca *CA) Info() Info {
	sum := sha1.Sum(ca.cert.Raw)
	return Info{Identifier: Identifier, Thumbprint: hex.EncodeToString(sum[:]), ValidFrom: ca.cert.NotBefore, ValidTill: ca.cert.NotAfter}
}

// newSerial returns 127 random bits, positive and far more than the 64 that
// the CA/Browser Forum asks for.
func newSerial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[0] &= 0x7f
	b[15] |= 1 // never zero
	return new(big.Int).SetBytes(b[:])
}
