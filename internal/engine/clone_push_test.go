package engine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe"
)

// feeding is a stub that answers followers on other hosts.
type feeding struct {
	*stub
	feed func(r FeedRequest) error
}

func (f *feeding) Feed(_ context.Context, _ Instance, r FeedRequest) error { return f.feed(r) }

// selfSigned stands for an authority: it signs what it is asked to.
func selfSigned(t *testing.T) (sign Signer, asked *[]string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asked = new([]string)
	return func(_ context.Context, csrPEM []byte, ips, _ []string) ([]byte, []byte, error) {
		block, _ := pem.Decode(csrPEM)
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, nil, err
		}
		*asked = append(*asked, csr.Subject.CommonName+"@"+ips[0])
		c := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: csr.Subject, NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, c, &x509.Certificate{Subject: pkix.Name{CommonName: "us"}}, csr.PublicKey, key)
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		return text, text, err
	}, asked
}

// TestFeed: only a follower is fed, by a certificate that names the server, from a folder of
// which nothing is left, whatever comes of it.
func TestFeed(t *testing.T) {
	p := newPlace(t, kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{"db-A~2"}})
	var asked *[]string
	p.l.c.Sign, asked = selfSigned(t)
	var got FeedRequest
	f := &feeding{p.stub, nil}
	p.l.c.Driver = f
	to := Ask{ID: "db-A~2", At: netip.MustParseAddrPort("127.0.0.1:3306")}
	f.feed = func(r FeedRequest) error {
		got = r
		c, err := r.Certificate(t.Context())
		if err != nil || c.Leaf.Subject.CommonName != string(p.a.Instance) {
			t.Errorf("it shows %v, %v", c.Leaf, err)
		}
		if err := p.l.sweepFeeds(p.instance()); err != nil {
			t.Error(err)
		}
		return errors.Join(os.Mkdir(r.Dir, 0o700), errLost)
	}
	for range 2 {
		if err := p.l.Feed(t.Context(), p.a, to); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
	}
	if got.Ask != to || filepath.Dir(got.Dir) != p.home().FeedDir() || exists(got.Dir) {
		t.Errorf("%+v", got)
	}
	if len(*asked) != 2 || (*asked)[0] != string(p.a.Instance)+"@"+p.a.Listens() {
		t.Errorf("certificates for %q", *asked)
	}
	if exists(filepath.Join(p.home().TLSDir(), certificateFile)) {
		t.Error("the server has another certificate by that")
	}
	if err := p.l.Feed(t.Context(), p.a, Ask{ID: "db-B", At: to.At}); err == nil || errors.Is(err, errLost) {
		t.Errorf("one that is no follower: %v", err)
	}
	if err := errors.Join(os.Mkdir(got.Dir, 0o700), p.l.sweepFeeds(p.instance())); err != nil || exists(p.home().FeedDir()) {
		t.Errorf("what a service that died has left: %v", err)
	}
}

var errLost = errors.New("lost on the way")
