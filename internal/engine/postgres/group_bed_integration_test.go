//go:build integration

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/pki"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// group is an instance with two servers or three, driven by the driver alone: nothing but the test
// says what becomes of them.
type group struct {
	bed *enginetest.Bed
	d   *Driver
	m   []engine.Instance // by number - 1
}

// newGroup is a writer that was a server without a group just now, and a clone that follows
// it. Both listen at the port of the instance.
func newGroup(t *testing.T) *group {
	t.Helper()
	return groupOf(t, running(t))
}

func groupOf(t *testing.T, b *enginetest.Bed) *group {
	t.Helper()
	b.MustQuery(t, "CREATE TABLE ledger (n integer PRIMARY KEY, why text)")
	g := &group{bed: b, d: b.Driver.(*Driver), m: []engine.Instance{b.Instance()}}
	g.issue(t, 0, string(g.m[0].Instance))
	g.join(t)
	return g
}

// join adds a clone of the first server that follows it.
func (g *group) join(t *testing.T) {
	t.Helper()
	n := len(g.m)
	g.m = append(g.m, g.bed.Instance())
	i := &g.m[n]
	i.Instance = g.bed.Want.Instance.Member(n + 1)
	i.Home = g.bed.Lifecycle.Home(i.Instance)
	i.SeenDir, i.ListensAt = i.Home.Dir, otherAddress(i.Address, n)
	t.Cleanup(func() { g.kill(t, n) })
	g.makeHome(t, n)
	g.issue(t, n, string(i.Instance))
	g.write(t, 0)
	if err := g.d.Followers(t.Context(), g.m[0]); err != nil {
		t.Fatal(err)
	}
	g.clone(t, n, 0)
	g.start(t, n)
	g.follows(t, n)
}

// otherAddress is one that the bed's instance does not have, nor any other member.
func otherAddress(address string, n int) string {
	ip := net.ParseIP(address).To4()
	return net.IPv4(ip[0], 77+byte(n), ip[2], ip[3]).String()
}

func (g *group) makeHome(t *testing.T, n int) {
	t.Helper()
	h, uid, gid := g.m[n].Home, os.Getuid(), os.Getgid()
	if u := g.m[n].User; u != nil {
		uid, gid = u.UID, u.GID
	}
	for _, dir := range []string{h.Dir, h.ConfDir(), h.TLSDir()} {
		if err := volume.EnsureDir(dir, 0o750, os.Getuid(), gid); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{h.RunDir(), h.LogDir()} {
		if err := volume.EnsureDir(dir, 0o700, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
}

// put writes a file that the engine's group may read.
func (g *group) put(t *testing.T, n int, path string, data []byte) {
	t.Helper()
	mode, gid := os.FileMode(0o600), -1
	if u := g.m[n].User; u != nil {
		mode, gid = 0o640, u.GID
	}
	if err := errors.Join(volume.AtomicWrite(path, data, mode), os.Chown(path, -1, gid)); err != nil {
		t.Fatal(err)
	}
}

// issue gives a member a certificate of this name.
func (g *group) issue(t *testing.T, n int, name string) {
	t.Helper()
	keyPEM, certPEM, caPEM := g.certificate(t, name, g.m[n].Address, g.m[n].Listens())
	tlsDir := g.m[n].Home.TLSDir()
	g.put(t, n, filepath.Join(tlsDir, keyFile), keyPEM)
	g.put(t, n, filepath.Join(tlsDir, authorityFile), caPEM)
	g.put(t, n, filepath.Join(tlsDir, certificateFile), certPEM)
}

func (g *group) certificate(t *testing.T, name string, addresses ...string) (keyPEM, certPEM, caPEM []byte) {
	t.Helper()
	ca, err := pki.Open(filepath.Join(g.bed.Root, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, csrPEM, err := pki.NewKeyAndCSR(name)
	if err != nil {
		t.Fatal(err)
	}
	var ips []net.IP
	for _, a := range addresses {
		ips = append(ips, net.ParseIP(a))
	}
	if certPEM, err = ca.Sign(csrPEM, ips, nil, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	return keyPEM, certPEM, ca.PEM()
}

// settings writes what a member's role asks for, and has it loaded if it runs.
func (g *group) settings(t *testing.T, n int) {
	t.Helper()
	for name, text := range g.d.Render(g.m[n]) {
		g.put(t, n, filepath.Join(g.m[n].Home.ConfDir(), name), []byte(text))
	}
	if _, alive, err := proc.Find(g.m[n].Home.RecordFile()); err != nil || !alive {
		return
	}
	if err := g.d.Reload(t.Context(), g.m[n]); err != nil {
		t.Fatal(err)
	}
}

// write makes a member the writer, whose commits wait for these.
func (g *group) write(t *testing.T, n int, waitFor ...kurabe.InstanceID) {
	t.Helper()
	role := kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, WaitFor: waitFor}
	for other, i := range g.m {
		if other != n {
			role.Followers = append(role.Followers, i.Instance)
		}
	}
	g.m[n].Role = &role
	g.settings(t, n)
}

// hold orders a follower to follow nobody, and returns how far its log is.
func (g *group) hold(t *testing.T, n int) int64 {
	t.Helper()
	g.m[n].Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyDetached}
	g.settings(t, n)
	at, err := g.d.Hold(t.Context(), g.m[n])
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// follow orders a member to follow another one.
func (g *group) follow(t *testing.T, n, source int) {
	t.Helper()
	s := g.m[source]
	g.m[n].Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: s.Instance, Address: s.Listens(), Port: s.Port}}
	g.settings(t, n)
}

func (g *group) caFile(n int) string { return filepath.Join(g.m[n].Home.TLSDir(), authorityFile) }

func (g *group) clone(t *testing.T, n, source int) {
	t.Helper()
	g.follow(t, n, source)
	if err := g.d.Clone(t.Context(), g.m[n], g.caFile(n)); err != nil {
		t.Fatal(err)
	}
	if !g.d.IsFollower(g.m[n].Home) {
		t.Fatal("the clone is no follower")
	}
}

func (g *group) start(t *testing.T, n int) {
	t.Helper()
	i := g.m[n]
	command := g.d.Command(i)
	floors, err := g.d.floors(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	command.Argv = append(command.Argv, floors...)
	_, err = i.Home.Daemon().Start(t.Context(), proc.Spec{
		Name: "postgres " + string(i.Instance), Argv: command.Argv, Env: command.Env, User: i.User,
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "server that is ready", func() bool { return g.d.Ready(t.Context(), i) == nil })
}

func (g *group) end(t *testing.T, n int, sig int) {
	t.Helper()
	h := g.m[n].Home
	p, alive, err := proc.Find(h.RecordFile())
	if err != nil || !alive {
		t.Fatalf("member %d does not run: %v", n+1, err)
	}
	if err := errors.Join(p.Signal(syscall.Signal(sig)), p.Wait(t.Context()), proc.KillSurvivors(t.Context(), h.DataDir()), os.Remove(h.RecordFile())); err != nil {
		t.Fatal(err)
	}
}

// kill ends what is left, whatever state the test is in.
func (g *group) kill(t *testing.T, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dirs, _ := filepath.Glob(g.m[n].Home.DataDir() + "*")
	for _, dir := range dirs {
		if err := proc.KillSurvivors(ctx, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// freeze stops every process of a server, and thaws them again.
func (g *group) freeze(t *testing.T, n int) (thaw func()) {
	t.Helper()
	pids, err := proc.Survivors(g.m[n].Home.DataDir())
	if err != nil || len(pids) == 0 {
		t.Fatalf("processes of member %d: %v, %v", n+1, pids, err)
	}
	signal := func(sig syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig) // one may have ended by itself
		}
	}
	thaw = func() { signal(syscall.SIGCONT) }
	t.Cleanup(thaw)
	signal(syscall.SIGSTOP)
	return thaw
}

func (g *group) look(t *testing.T, n int) engine.RoleView {
	t.Helper()
	w, err := g.d.OpenWatch(t.Context(), g.m[n])
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	v, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// follows waits until the log of a follower comes in.
func (g *group) follows(t *testing.T, n int) {
	t.Helper()
	until(t, "follower that follows", func() bool { return g.look(t, n).Following })
}

// client runs a statement as the master user, at the server itself.
func (g *group) client(ctx context.Context, n int, sql string) (string, error) {
	login := g.bed.Login()
	login.Address = g.m[n].Listens()
	return query(ctx, login, sql)
}

// rows are the numbers in the ledger of a server that may let no client in.
func (g *group) rows(t *testing.T, n int) []int {
	t.Helper()
	config, err := sessionConfig("/", g.m[n].Port, adminRole)
	if err != nil {
		t.Fatal(err)
	}
	config.Database = "shop"
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialSocket(ctx, g.m[n].Home.RunDir(), g.m[n].Port)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(t.Context(), conn)
	answer, err := conn.Query(t.Context(), "SELECT n FROM ledger ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := pgx.CollectRows(answer, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// has waits until a server's ledger holds exactly these.
func (g *group) has(t *testing.T, n int, want ...int) {
	t.Helper()
	until(t, fmt.Sprintf("ledger of %v in member %d", want, n+1), func() bool { return slices.Equal(g.rows(t, n), want) })
}

// comeIn logs in over TLS as the service's role with a certificate, or without one.
func (g *group) comeIn(ctx context.Context, n int, keyPEM, certPEM []byte, database string) error {
	config, err := sessionConfig(g.m[n].Listens(), g.m[n].Port, adminRole)
	if err != nil {
		return err
	}
	config.Database = strings.TrimPrefix(database, "replication:")
	if config.Database != database {
		config.RuntimeParams["replication"] = "true"
	}
	config.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	if certPEM != nil {
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return err
		}
		config.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		closeConn(ctx, conn)
	}
	return err
}
