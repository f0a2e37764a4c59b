package pki

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Party is an end of the link between a server of the service and the agent of another
// host. Database servers hold certificates of the same authority, with the name that they
// like; only SignParty writes this one, as a URI of its own scheme.
type Party struct {
	Kind PartyKind
	ID   string // of the host
}

// PartyKind says which end it is.
type PartyKind string

// The kinds.
const (
	PartyServer PartyKind = "server"
	PartyAgent  PartyKind = "agent"
)

const partyScheme = "kurabe"

// ServerName is in the certificate of each server of the service, and in no other one:
// Sign refuses it. It is for those who cannot look at a party (etcd, of a peer).
const ServerName = "server" + partyDomain

// partyDomain is of names that no host has.
const partyDomain = ".party.kurabe.internal"

// partyIDMax bounds an id, in bytes.
const partyIDMax = 64

func (p Party) uri() (*url.URL, error) {
	if p.ID == "" || len(p.ID) > partyIDMax || strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, fmt.Errorf("pki: invalid host id %q", p.ID)
	}
	return &url.URL{Scheme: partyScheme, Host: string(p.Kind), Path: "/" + p.ID}, nil
}

// SignParty returns a certificate, in PEM, of one end of a link.
func (ca *CA) SignParty(csrPEM []byte, p Party, validity time.Duration) ([]byte, error) {
	csr, err := parseRequest(csrPEM)
	if err != nil {
		return nil, err
	}
	uri, err := p.uri()
	if err != nil {
		return nil, err
	}
	if validity <= 0 || validity > ValidityMax {
		return nil, fmt.Errorf("pki: validity %s; at most %s", validity, ValidityMax)
	}
	// The common name is none that a database server lets in.
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "kurabe " + string(p.Kind) + " " + p.ID}, URIs: []*url.URL{uri}}
	if p.Kind == PartyServer {
		template.DNSNames = []string{ServerName}
	}
	return ca.issue(template, csr.PublicKey, validity)
}

// PartyOf says which end a certificate is of; the caller has verified it.
func PartyOf(cert *x509.Certificate) (Party, error) {
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != partyScheme {
		return Party{}, errors.New("pki: the certificate belongs to no host or server")
	}
	p := Party{Kind: PartyKind(cert.URIs[0].Host), ID: strings.TrimPrefix(cert.URIs[0].Path, "/")}
	if uri, err := p.uri(); err != nil || uri.String() != cert.URIs[0].String() || p.Kind != PartyServer && p.Kind != PartyAgent {
		return Party{}, fmt.Errorf("pki: %q names no host or server", cert.URIs[0])
	}
	return p, nil
}

// ServerIdentity makes a key, which stays in memory, and the certificate of a server of
// the service.
func (ca *CA) ServerIdentity(id string, validity time.Duration) (tls.Certificate, error) {
	certPEM, keyPEM, err := ca.Identity(Party{PartyServer, id}, validity)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// Identity makes the certificate of a party and its key, in PEM. The root is with the
// certificate: whoever joins knows it by its digest only.
func (ca *CA) Identity(p Party, validity time.Duration) (certPEM, keyPEM []byte, err error) {
	keyPEM, csrPEM, err := NewKeyAndCSR(p.ID)
	if err != nil {
		return nil, nil, err
	}
	certPEM, err = ca.SignParty(csrPEM, p, validity)
	return append(certPEM, ca.pem...), keyPEM, err
}

// Digest is the SHA-256 of the root certificate, in hex.
func (ca *CA) Digest() string { return digest(ca.cert.Raw) }

func digest(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// KeyDigest is the SHA-256 of the public key in a request, in hex, whose sender holds the
// private one.
func KeyDigest(csrPEM []byte) (string, error) {
	csr, err := parseRequest(csrPEM)
	if err != nil {
		return "", err
	}
	return digest(csr.RawSubjectPublicKeyInfo), nil
}

// VerifyParty checks the certificates that the other end has shown, the leaf first: they
// lead to the root, and the leaf is of that kind.
func VerifyParty(chain []*x509.Certificate, roots *x509.CertPool, kind PartyKind) (Party, error) {
	if len(chain) == 0 {
		return Party{}, errors.New("pki: the peer sent no certificate")
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return Party{}, fmt.Errorf("pki: %w", err)
	}
	p, err := PartyOf(chain[0])
	if err == nil && p.Kind != kind {
		err = fmt.Errorf("pki: the certificate belongs to the %s %s, not to a %s", p.Kind, p.ID, kind)
	}
	return p, err
}

// RootByDigest finds the root certificate with a digest among those that a server has
// shown.
func RootByDigest(chain []*x509.Certificate, want string) (*x509.CertPool, []byte, error) {
	for _, c := range chain {
		if c.IsCA && digest(c.Raw) == want {
			pool := x509.NewCertPool()
			pool.AddCert(c)
			return pool, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), nil
		}
	}
	return nil, nil, errors.New("pki: another authority than the token's signed the server's certificate")
}
