//go:build integration

package mariadb

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
)

// restartWith restarts the instance with further settings.
func restartWith(t *testing.T, b *enginetest.Bed, settings map[string]string) {
	t.Helper()
	all := map[string]string{}
	for name, value := range b.Want.Settings {
		all[name] = value
	}
	for name, value := range settings {
		all[name] = value
	}
	b.Want.Settings, b.Want.Boot, b.Want.Generation = all, b.Want.Boot+1, b.Want.Generation+1
	b.Satisfy(t)
}

func TestTLS(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	plain := b.Login()
	plain.CAFile = ""
	if _, err := query(t.Context(), plain, "SELECT 1"); err != nil {
		t.Errorf("without TLS, which is allowed by default: %v", err)
	}
	if cipher, err := query(t.Context(), b.Login(), "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_version'"); err != nil || !strings.HasPrefix(cipher, "TLSv1.") {
		t.Errorf("TLS version %q, %v", cipher, err)
	}
	restartWith(t, b, map[string]string{"require_secure_transport": "1"})
	if _, err := query(t.Context(), plain, "SELECT 1"); err == nil {
		t.Error("it lets in without TLS what is forbidden")
	}
	b.MustQuery(t, "SELECT 1")
}

// No verifier is in a log, the statistics or the process list, whatever is
// switched on, and no password is anywhere.
func TestNoSecretIsLogged(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	restartWith(t, b, map[string]string{
		"general_log": "1", "slow_query_log": "1", "long_query_time": "0", "log_output": "FILE,TABLE", "performance_schema": "1",
		"log_warnings": "9", "userstat": "1",
	})
	b.MustQuery(t, "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES'")
	b.MustQuery(t, "SELECT 'a statement of a client'")
	before := b.Password
	b.Password = "Second-password-2"
	verifier, err := door.Verifier(b.Password)
	if err != nil {
		t.Fatal(err)
	}
	b.Want.Password.Verifier, b.Want.Password.Seq, b.Want.Generation = verifier, 2, b.Want.Generation+1
	b.Satisfy(t)
	if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
		t.Fatal(err)
	}
	secrets := []string{before.Reveal(), b.Password.Reveal(), verifier}
	for _, table := range []string{
		"mysql.general_log", "mysql.slow_log", "performance_schema.events_statements_history_long",
		"performance_schema.events_statements_summary_by_digest", "information_schema.PROCESSLIST",
	} {
		text := dump(t, b, table)
		if table == "mysql.general_log" && !strings.Contains(text, "a statement of a client") {
			t.Error("the general log does not work, so this proves nothing")
		}
		find(t, table, text, secrets)
	}
	files, err := filepath.Glob(filepath.Join(b.Home().LogDir(), "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("logs: %v, %v", files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		find(t, path, string(text), secrets)
	}
}

func find(t *testing.T, where, text string, secrets []string) {
	t.Helper()
	for _, s := range append(secrets, "rdsprobe_") {
		if s == "rdsprobe_" && !strings.Contains(where, "general") {
			continue // Its name is a client's, and no secret.
		}
		if s != "rdsprobe_" && strings.Contains(text, s) {
			t.Errorf("%s holds %s", where, s)
		}
	}
}

func dump(t *testing.T, b *enginetest.Bed, table string) string {
	t.Helper()
	var text strings.Builder
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
		rows, err := a.Query(t.Context(), "SELECT * FROM "+table)
		fmt.Fprint(&text, rows)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// What is hard to quote arrives as it is.
func TestHostileValues(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	for _, value := range []string{
		`SELECT "a # b"`, `SELECT 'it''s', "x\\y" # end`, "SELECT 1\n!include /etc/passwd\n[mariadbd]\nskip_grant_tables\n",
		"SELECT 1\r\nplugin_load=evil", `\`, `"`, "\t tab and space ", "SELECT '" + strings.Repeat("x", 3000) + "'",
	} {
		restartWith(t, b, map[string]string{"init_connect": value})
		// Inside, because most of them turn a client away.
		got := inside(t, b, "SELECT @@GLOBAL.init_connect, @@plugin_dir")
		if len(got) != 1 || got[0][0] != value {
			t.Errorf("%q arrives as %q", value, got)
		}
		if len(got) != 1 || strings.TrimSuffix(got[0][1], "/") != b.Home().ConfDir() {
			t.Errorf("plugin folder: %q", got)
		}
	}
}

// A setting of the running server that somebody has changed comes back with the
// next reload, whether the group has it or not.
func TestReloadTakesBack(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	// No account can; the service's own sessions could by a mistake.
	inside(t, b, "SET GLOBAL max_connections = 11", "SET GLOBAL init_connect = 'SELECT 1'", "SET GLOBAL proxy_protocol_networks = '*'")
	if err := b.Driver.Reload(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	if got := b.MustQuery(t, "SELECT CONCAT_WS('|', @@GLOBAL.max_connections, @@GLOBAL.init_connect, @@GLOBAL.proxy_protocol_networks)"); got != "20||" {
		t.Errorf("after the reload: %s", got)
	}
}

// The guard listens to its one user, and a server without guards does not start.
func TestGuard(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	if b.Account() != nil {
		out, err := proc.Run(t.Context(), proc.Tool{
			Name: "stranger", Argv: []string{"/usr/bin/perl", "-MIO::Socket::UNIX", "-e",
				`$SIG{PIPE} = "IGNORE"; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "no: $!"; print $s pack("NA*", 8, "SELECT 1"); $s->flush; print read($s, $x, 4) || 0`,
				filepath.Join(b.Home().RunDir(), guard.SocketName)},
			Env: scratch.Env(), Dir: "/", User: b.Account(),
		})
		if err != nil || strings.TrimSpace(string(out)) == "4" {
			t.Errorf("the guard answers the engine's own user: %q, %v", out, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A session that says nothing does not hold up the shutdown.
	idle, err := guard.Open(ctx, b.Instance())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	process := b.Process(t)
	begin := time.Now()
	if err := process.Signal(15); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	schema := filepath.Join(b.Home().DataDir(), conf.SystemSchema)
	if err := errors.Join(os.Chmod(schema, 0o700), os.Remove(filepath.Join(schema, "db.TRG"))); err != nil {
		t.Fatal(err)
	}
	i := b.Instance()
	command := b.Driver.Command(i)
	_, err = proc.Run(ctx, proc.Tool{Name: "mariadbd", Argv: command.Argv, Env: command.Env, Dir: b.Home().DataDir(), User: b.Account()})
	if err == nil {
		t.Fatal("the server ran without a guard and ended well")
	}
	text, _ := os.ReadFile(filepath.Join(b.Home().LogDir(), conf.ErrorLog))
	if _, reason := b.Driver.StartFailure(string(text)); !strings.Contains(reason, "the guard is missing from mysql/db.TRG") {
		t.Errorf("reason: %s", reason)
	}
}

func TestRotateLogs(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	now := time.Date(2026, 11, 21, 4, 30, 0, 0, time.UTC)
	driver := b.Driver.(*Driver)
	for range 2 {
		if err := driver.RotateLogs(t.Context(), b.Instance(), now); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(filepath.Join(b.Home().LogDir(), conf.ErrorLog+".2026-11-21.04"))
	if err != nil || !bytes.Contains(old, []byte("ready for connections")) {
		t.Errorf("the finished log: %s, %v", old, err)
	}
	if _, err := os.Stat(filepath.Join(b.Home().LogDir(), conf.ErrorLog)); err != nil {
		t.Errorf("the new log: %v", err)
	}
}

// The server takes no TLS older than 1.2.
func TestOldTLS(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		if err := handshake(b, version); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// handshake asks for TLS as a client does: the server's greeting is read, and a
// short answer with the TLS flag sent.
func handshake(b *enginetest.Bed, version uint16) error {
	conn, err := net.DialTimeout("tcp", door.Endpoint(b.Instance()), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	header := make([]byte, 4)
	if _, err := io.ReadFull(conn, header); err != nil {
		return err
	}
	greeting := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err
	}
	const protocol41, ssl, secure = 0x200, 0x800, 0x8000
	flags := protocol41 | ssl | secure
	packet := make([]byte, 36)
	packet[0], packet[3], packet[12] = 32, 1, 45
	packet[4], packet[5] = byte(flags&0xff), byte(flags>>8)
	packet[11] = 1 // 16 MiB packets
	if _, err := conn.Write(packet); err != nil {
		return err
	}
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
	return client.Handshake()
}
