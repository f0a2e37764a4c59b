package pki

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

func leaf(t *testing.T, certPEM []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certPEM)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParties(t *testing.T) {
	ca, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	_, csr, err := NewKeyAndCSR("kurabe server host-1")
	if err != nil {
		t.Fatal(err)
	}
	want := Party{PartyAgent, "host-1"}
	cert, err := ca.SignParty(csr, want, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := VerifyParty([]*x509.Certificate{leaf(t, cert)}, roots, PartyAgent); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := VerifyParty([]*x509.Certificate{leaf(t, cert)}, roots, PartyServer); err == nil {
		t.Error("an agent passes for a server")
	}
	if _, err := VerifyParty(nil, roots, PartyAgent); err == nil {
		t.Error("nobody passes for an agent")
	}
	foreign, err := other.SignParty(csr, want, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyParty([]*x509.Certificate{leaf(t, foreign)}, roots, PartyAgent); err == nil {
		t.Error("another authority's agent passes")
	}
	database, err := ca.Sign(csr, nil, []string{"kurabe.agent"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyParty([]*x509.Certificate{leaf(t, database)}, roots, PartyAgent); err == nil {
		t.Error("a database server passes for an agent")
	}
	for _, id := range []string{"", "a/b", "a b", "../x", "A", strings.Repeat("a", 65)} {
		if _, err := ca.SignParty(csr, Party{PartyAgent, id}, time.Hour); err == nil {
			t.Errorf("id %q is signed", id)
		}
	}
	if _, err := ca.SignParty(csr, want, ValidityMax+time.Hour); err == nil {
		t.Error("a validity without end is signed")
	}
}

func TestRootByDigest(t *testing.T) {
	ca, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ca.ServerIdentity("host-1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var chain []*x509.Certificate
	for _, der := range identity.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	roots, root, err := RootByDigest(chain, ca.Digest())
	if err != nil || string(root) != string(ca.PEM()) {
		t.Fatalf("%s, %v", root, err)
	}
	if p, err := VerifyParty(chain, roots, PartyServer); err != nil || p.ID != "host-1" {
		t.Errorf("%v, %v", p, err)
	}
	if _, _, err := RootByDigest(chain, strings.Repeat("0", 64)); err == nil {
		t.Error("another authority is found")
	}
	if _, _, err := RootByDigest(chain[:1], digest(chain[0].Raw)); err == nil {
		t.Error("a leaf passes for the authority")
	}
}
