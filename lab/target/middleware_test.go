package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

func TestBetweenIsConfigured(t *testing.T) {
	direct := dial.Server{Engine: study.Postgres, Host: "127.66.0.1", Port: 5432, User: `an"n`, Password: `pa"ss`}
	encrypted, open := direct, direct
	encrypted.TLS, open.Password = true, ""
	mariadb := dial.Server{Engine: study.MariaDB, Host: "::1", Port: 3306, User: "ann", Password: `pa"ss`}
	cases := map[string]struct {
		endpoint, version string
		direct            dial.Server
		has, lacks        []string
		about             map[string]string
	}{
		"PgBouncer of Debian 12": {
			endpoint: study.EndpointPgBouncer, version: "1.18.0", direct: direct,
			has:   []string{"pool_mode = transaction", "default_pool_size = 20", "listen_port = 6432", "host=127.66.0.1 port=5432", "server_tls_sslmode = disable", "auth_type = scram-sha-256"},
			lacks: []string{"max_prepared_statements", "client_tls"},
			about: map[string]string{"pool_mode": "transaction", "default_pool_size": "20", "tls": "off", "prepared_statements": "0"},
		},
		"a newer PgBouncer, with TLS": {
			endpoint: study.EndpointPgBouncer, version: "1.24.1", direct: encrypted,
			has:   []string{"max_prepared_statements = 200", "server_tls_sslmode = require", "client_tls_sslmode = require"},
			about: map[string]string{"tls": "both sides", "prepared_statements": "200"},
		},
		"PgBouncer without a password": {
			endpoint: study.EndpointPgBouncer, direct: open,
			has: []string{"auth_type = trust"}, lacks: []string{"scram"}, about: map[string]string{"auth_type": "trust"},
		},
		"HAProxy": {
			endpoint: study.EndpointHAProxy, version: "2.6.12", direct: mariadb,
			has: []string{"mode tcp", "bind 127.0.0.1:6432", "server direct [::1]:3306"}, about: map[string]string{"mode": "tcp"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args, about, err := betweenKinds[c.endpoint].write(place{dir: dir, port: 6432, direct: c.direct, version: c.version})
			must(t, err)
			config, err := os.ReadFile(args[len(args)-1])
			must(t, err)
			for _, words := range c.has {
				if !strings.Contains(string(config), words) {
					t.Errorf("%q is not in:\n%s", words, config)
				}
			}
			for _, words := range append(c.lacks, "pa\"ss") {
				if strings.Contains(string(config), words) {
					t.Errorf("%q is in:\n%s", words, config)
				}
			}
			for name, want := range c.about {
				if about[name] != want {
					t.Errorf("the file tells %s %q, want %q", name, about[name], want)
				}
			}
			files, err := os.ReadDir(dir)
			must(t, err)
			for _, f := range files {
				info, err := f.Info()
				must(t, err)
				if info.Mode().Perm() != 0o600 {
					t.Errorf("%s has mode %v", f.Name(), info.Mode())
				}
			}
		})
	}
}

func TestLoginOfPgBouncer(t *testing.T) {
	dir := t.TempDir()
	_, _, err := writePgBouncer(place{dir: dir, port: 6432, direct: dial.Server{Host: "h", Port: 1, User: `an"n`, Password: `pa"ss`}})
	must(t, err)
	login, err := os.ReadFile(filepath.Join(dir, "users.txt"))
	must(t, err)
	if string(login) != `"an""n" "pa""ss"`+"\n" {
		t.Error("another login")
	}
}

func TestProgramVersion(t *testing.T) {
	cases := map[string]string{
		"echo PgBouncer 1.18.0; echo libevent 2.1": "1.18.0", "echo HAProxy version 2.6.12-1+deb12u4 2026/10/17": "2.6.12",
		"echo PgBouncer 1.24rc1": "1.24", "echo hello": "", "exit 1": "",
	}
	for text, want := range cases {
		if got := programVersion(t.Context(), script(t, "program", text), "-v"); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestKeepsPrepared(t *testing.T) {
	for version, want := range map[string]bool{"1.18.0": false, "1.20.1": false, "1.21.0": true, "1.24": true, "2.0": true, "": false, "1": false} {
		if keepsPrepared(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

// TestBetweenThatEnds wants what the program said, and nothing left, when it does not come
// up.
func TestBetweenThatEnds(t *testing.T) {
	bin, folder := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, study.EndpointHAProxy), []byte("#!/bin/sh\necho out of order >&2; exit 1\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if os.Getuid() == 0 {
		must(t, os.Chmod(filepath.Dir(bin), 0o711))
		must(t, os.Chmod(bin, 0o711))
	}
	_, err := startBetween(t.Context(), betweenKinds[study.EndpointHAProxy], folder, dial.Server{Engine: study.Postgres, Host: "127.0.0.1", Port: 1})
	if err == nil || !strings.Contains(err.Error(), "out of order") || !strings.HasPrefix(err.Error(), "start HAProxy: it ended at once") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
