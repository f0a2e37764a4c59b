package postgres

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// sameCertificate compares what the server shows with what is in TLSDir.
func sameCertificate(ctx context.Context, i engine.Instance) error {
	want, err := leaf(filepath.Join(i.Home.TLSDir(), "server.crt"))
	if err != nil {
		return err
	}
	got, err := shownCertificate(ctx, i)
	if err != nil {
		return fmt.Errorf("look at the certificate: %w", err)
	}
	if !bytes.Equal(got, want) {
		return errors.New("the server still shows another certificate than the one in its folder")
	}
	return nil
}

// The SSLRequest packet: its length and the code that no protocol version has.
const (
	sslRequestBytes = 8
	sslRequestCode  = 80877103
)

func shownCertificate(ctx context.Context, i engine.Instance) ([]byte, error) {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", listening(i))
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := raw.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, sslRequestBytes), sslRequestCode)
	answer := make([]byte, 1)
	if _, err := raw.Write(request); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(raw, answer); err != nil {
		return nil, err
	}
	if answer[0] != 'S' {
		return nil, errors.New("the server does not offer TLS")
	}
	// Nothing is sent over it: the bytes of the certificate are compared.
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0].Raw, nil
}

func leaf(path string) ([]byte, error) {
	text, err := volume.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return block.Bytes, nil
}

func readRoots(caFile string) (*x509.CertPool, error) {
	text, err := volume.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return roots, nil
}
