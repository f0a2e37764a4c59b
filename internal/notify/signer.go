package notify

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"
)

// Signer signs documents as SNS does.
type Signer struct {
	Key *rsa.PrivateKey
	// CertificateURL is where the certificate of the key is found. Validators demand that it
	// begins with https and ends in .pem.
	CertificateURL string
	Until          time.Time // when another certificate is due
}

// signer opens the Signer when it is needed first, since making a key takes a second, and again
// when another certificate is due.
func (d *Deliverer) signer(ctx context.Context) (*Signer, error) {
	d.signing.Lock()
	defer d.signing.Unlock()
	if d.opened == nil || !d.Now().Before(d.opened.Until) {
		opened, err := d.OpenSigner(ctx)
		if err != nil {
			return nil, fmt.Errorf("key for notifications: %w", err)
		}
		d.opened = opened
	}
	return d.opened, nil
}

// sign fills in the signature of a version: "1" is of SHA-1, "2" of SHA-256.
func (s *Signer) sign(d *document, version string) error {
	hash, sum := crypto.SHA1, sha1.Sum([]byte(d.signed()))
	digest := sum[:]
	d.SignatureVersion, d.SigningCertURL = "1", s.CertificateURL
	if version == "2" {
		sum := sha256.Sum256([]byte(d.signed()))
		hash, digest, d.SignatureVersion = crypto.SHA256, sum[:], "2"
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.Key, hash, digest)
	if err != nil {
		return fmt.Errorf("sign notification: %w", err)
	}
	d.Signature = base64.StdEncoding.EncodeToString(signature)
	return nil
}
