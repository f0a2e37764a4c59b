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
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/sampling"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/ownconn"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// applicationName is how the service's sessions show in pg_stat_activity.
const applicationName = "kurabe"

// dialSocket reaches the server's socket, wherever somebody has put links.
func dialSocket(ctx context.Context, dir string, port int) (net.Conn, error) {
	return volume.DialSocket(ctx, filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port)))
}

// connectError tells "not yet" from "wrong".
func connectError(err error) error {
	const cannotConnectNow = "57P03"
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == cannotConnectNow,
		errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: %w", engine.ErrNotReady, err)
	}
	return fmt.Errorf("connect: %w", err)
}

// closeConn says goodbye, so that the server does not log a lost connection,
// even when the caller's time is up.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// withAdmin runs do in one session of the service.
func (d *Driver) withAdmin(ctx context.Context, i engine.Instance, do func(*pgx.Conn) error) error {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	return do(conn)
}

// execAll runs statements one by one, each in its own transaction.
func execAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// tlsFor verifies the server as a careful client does.
func tlsFor(i engine.Instance, caFile string) (*tls.Config, error) {
	roots, err := readRoots(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, ServerName: strings.Trim(i.Address, "[]"), MinVersion: tls.VersionTLS12}, nil
}

// placesLeft is how many connections a sampler leaves free, of those that only the service may
// use: what it does for the user needs up to two at a time.
const placesLeft = 2

// OpenSampler implements engine.Driver. It fails while clients have so many connections that it
// would take one that the service needs for more than metrics.
func (d *Driver) OpenSampler(ctx context.Context, i engine.Instance) (engine.Sampler, error) {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open sampler: %w", err)
	}
	var left int
	err = conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('max_connections')::integer - pg_catalog.count(*)::integer
		FROM pg_catalog.pg_stat_get_activity(NULL) a WHERE a.backend_type = 'client backend'`).Scan(&left)
	if err == nil && left < placesLeft {
		err = fmt.Errorf("%d connections are left", left)
	}
	if err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("open sampler: %w", err)
	}
	return &sampling.Sampler{Conn: conn, Closes: func(c *pgx.Conn) { closeConn(context.Background(), c) }}, nil
}

// Files in Home.TLSDir.
const (
	certificateFile = "server.crt"
	keyFile         = "server.key"
	authorityFile   = "ca.pem"
)

// addressNamesMajor is the first version whose libpq compares an address with those in a
// certificate. An older one would look for it among the names, in vain.
const addressNamesMajor = 15

// connectSeconds is how long a follower waits for an answer of its source.
const connectSeconds = "3"

// infoEscapes are libpq's own within quotes.
var infoEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, `'`, `\'`)

// sourceInfo is how a member connects to its source, in libpq's notation. The certificate
// that it shows is its server's; there is no secret in it, only where the key lies. Paths
// are as the engine's programs see them, caFile is as we do.
func sourceInfo(i engine.Instance, caFile string, more ...line) string {
	tlsDir := i.Seen().TLSDir()
	verify := "verify-full"
	if majorOf(i.Version) < addressNamesMajor {
		verify = "verify-ca"
	}
	words := []line{
		{"host", i.Role.Source.Address}, {"port", fmt.Sprint(i.Role.Source.Port)}, {"user", adminRole},
		{"sslmode", verify}, {"sslrootcert", seenPath(i, caFile)},
		{"sslcert", filepath.Join(tlsDir, certificateFile)}, {"sslkey", filepath.Join(tlsDir, keyFile)},
		{"gssencmode", "disable"}, {"connect_timeout", connectSeconds},
	}
	var b strings.Builder
	for n, l := range append(words, more...) {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l.name + "='" + infoEscapes.Replace(l.value) + "'")
	}
	return b.String()
}

// followInfo is that of the session by which a server follows. The writer's side of the
// silence is set here, for this session alone. A session that is ended while it sends to a
// server which hangs, as by a checkpoint that gives up its slot, counts no silence any more
// and waits to say goodbye: the kernel's limit ends that. The checkpoint waits for it, and
// for the checkpoint every commit that still waits for the follower.
func followInfo(i engine.Instance) string {
	return sourceInfo(i, filepath.Join(i.Home.TLSDir(), authorityFile),
		line{"application_name", ownName(i)}, line{"options", "-c wal_sender_timeout=" + streamTimeout + " -c tcp_user_timeout=" + streamTimeout})
}

// toolSilence is how long the source waits for a session of one of the tools. It may not be
// as short as for one that follows: a disk that stands still for some seconds must not cost
// hours of copying.
const toolSilence = "60s"

// toolInfo is that of the sessions of a tool.
func toolInfo(i engine.Instance, caFile string, more ...line) string {
	options := clientOptions(majorOf(i.Version)) + " -c wal_sender_timeout=" + toolSilence
	return sourceInfo(i, caFile, append(more, line{"application_name", cloneName(i.Instance)}, line{"options", options})...)
}

// seenPath is a path of ours as the engine's programs see it.
func seenPath(i engine.Instance, path string) string {
	if rel, err := filepath.Rel(i.Home.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(i.SeenDir, rel)
	}
	return path
}

// sourceOf refuses an assignment that names nobody to follow.
func sourceOf(i engine.Instance) (kurabe.Source, error) {
	if i.Role == nil || i.Role.Source == nil {
		return kurabe.Source{}, errors.New("the assignment's role names no source to follow")
	}
	return *i.Role.Source, nil
}

// sourceConn opens a session of the service in the source, as this member.
func (d *Driver) sourceConn(ctx context.Context, i engine.Instance, caFile string) (*pgx.Conn, error) {
	source, err := sourceOf(i)
	if err != nil {
		return nil, err
	}
	conn, err := d.memberConn(ctx, i, caFile, source.Address, source.Port)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source.ID, err)
	}
	return conn, nil
}

// memberConn opens a session of the service by the certificate of this server.
func (d *Driver) memberConn(ctx context.Context, i engine.Instance, caFile, address string, port int) (*pgx.Conn, error) {
	config, err := sessionConfig(address, port, adminRole)
	if err != nil {
		return nil, err
	}
	roots, err := readRoots(caFile)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(i.Home.TLSDir(), certificateFile), filepath.Join(i.Home.TLSDir(), keyFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate that is shown to the source: %w", err)
	}
	config.TLSConfig = &tls.Config{
		RootCAs: roots, ServerName: address, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
	}
	conn, err := enter(ctx, i, config, asService)
	if err != nil {
		return nil, connectError(err)
	}
	return conn, nil
}

// memberTool runs one of the version's tools as the server's account, in a folder of the
// home; the paths among its arguments are as that account sees them. By the folder it works
// in, one that outlives the service is found and ended before that is touched again.
func memberTool(ctx context.Context, i engine.Instance, t proc.Tool) error {
	t.Name, t.Env, t.User, t.Cgroups = t.Argv[0], scratch.Env(), i.User, i.Cgroups
	t.Argv = append([]string{filepath.Join(i.Version.BinDir, t.Argv[0])}, t.Argv[1:]...)
	if i.SeenDir != i.Home.Dir {
		t.BindAs, t.BindFrom = i.SeenDir, i.Home.Dir
	}
	_, err := proc.Run(ctx, t)
	return err
}

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
	raw, err := ownconn.Dial(ctx, "tcp", listening(i))
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
