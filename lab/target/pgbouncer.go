package target

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// privateFile is the mode of what is for a program in between alone.
const privateFile = 0o600

// What PgBouncer is given, and what the file tells of it. The size of a pool is its
// default one, and written down so that another version's is the same.
const (
	poolMode = "transaction"
	poolSize = 20
	// preparedMax is how many statements it keeps of a session, where it can.
	preparedMax = 200
)

// writePgBouncer writes its configuration and, for its user alone, the login. Clients meet
// TLS where they would without it, or it would look cheaper than the way around it.
func writePgBouncer(p place) (args []string, about map[string]string, err error) {
	path := filepath.Join(p.dir, "pgbouncer.ini")
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d", p.direct.Host, p.direct.Port),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", p.port),
		"unix_socket_dir =",
		"auth_file = " + filepath.Join(p.dir, "users.txt"),
		"pool_mode = " + poolMode,
		fmt.Sprintf("default_pool_size = %d", poolSize),
		fmt.Sprintf("max_client_conn = %d", betweenClients),
		"ignore_startup_parameters = extra_float_digits,options",
		// Its lines would go to us, who make the load.
		"log_connections = 0",
		"log_disconnections = 0",
	}
	about = map[string]string{"pool_mode": poolMode, "default_pool_size": strconv.Itoa(poolSize), "prepared_statements": "0", "log_connections": "0"}
	// A server that asks for no password gives none to compare with.
	about["auth_type"] = "scram-sha-256"
	if p.direct.Password == "" {
		about["auth_type"] = "trust"
	}
	lines = append(lines, "auth_type = "+about["auth_type"])
	if keepsPrepared(p.version) {
		about["prepared_statements"] = strconv.Itoa(preparedMax)
		lines = append(lines, fmt.Sprintf("max_prepared_statements = %d", preparedMax))
	}
	if about["tls"] = "off"; p.direct.TLS {
		about["tls"] = "both sides"
		key, certificate := filepath.Join(p.dir, "key.pem"), filepath.Join(p.dir, "certificate.pem")
		if err := writeCertificate(key, certificate); err != nil {
			return nil, nil, err
		}
		lines = append(lines, "server_tls_sslmode = require", "client_tls_sslmode = require", "client_tls_key_file = "+key, "client_tls_cert_file = "+certificate)
	} else {
		lines = append(lines, "server_tls_sslmode = disable")
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), privateFile); err != nil {
		return nil, nil, err
	}
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	login := quote(p.direct.User) + " " + quote(string(p.direct.Password)) + "\n"
	return []string{path}, about, os.WriteFile(filepath.Join(p.dir, "users.txt"), []byte(login), privateFile)
}

// keepsPrepared says of a version of PgBouncer whether statements that were prepared in
// one transaction are there in the next: since 1.21.
func keepsPrepared(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a > 1 || a == 1 && b >= 21)
}

// certificateLife is longer than any study.
const certificateLife = 30 * 24 * time.Hour

// writeCertificate makes a key and a certificate that nobody has to believe: who measures
// asks for TLS, and not who is there.
func writeCertificate(keyPath, certificatePath string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	now := time.Now()
	of := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife)}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	if err := os.WriteFile(keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), privateFile); err != nil {
		return err
	}
	return os.WriteFile(certificatePath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), privateFile)
}
