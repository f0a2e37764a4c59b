package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	documentKeyFile = "notifications.key"
	documentKeyBits = 2048 // what SNS has
)

// DocumentKey returns the key with which this host signs documents for others, which is made the
// first time. It lies beside the authority's and never leaves the host.
func DocumentKey(dir string) (*rsa.PrivateKey, error) {
	path := filepath.Join(dir, documentKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := rsa.GenerateKey(rand.Reader, documentKeyBits)
		if err != nil {
			return nil, fmt.Errorf("make key: %w", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("encode key: %w", err)
		}
		return key, writeNew(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err == nil {
		err = checkPrivate(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("read %s: no private key in it", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read %s: a %T, not an RSA key", path, parsed)
	}
	return key, nil
}
