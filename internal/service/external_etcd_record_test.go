package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/etcdnode"
)

func TestEtcdFlags(t *testing.T) {
	login := func(text string) string {
		path := filepath.Join(t.TempDir(), "login")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const here = "https://a:2379,https://b:2379"
	for name, c := range map[string]struct {
		f            EtcdConfig
		user, secret string // of the environment
		says         string
		prefix, as   string
	}{
		"none":              {f: EtcdConfig{Prefix: "/kurabe/"}, prefix: "/kurabe/"},
		"no endpoints":      {f: EtcdConfig{Prefix: "/kurabe/", CAFile: "ca"}, says: "name its members"},
		"a prefix of none":  {f: EtcdConfig{Prefix: "/shop/"}, says: "name its members"},
		"two":               {f: EtcdConfig{Endpoints: here, Prefix: "/kurabe/"}, prefix: "/kurabe/"},
		"an open prefix":    {f: EtcdConfig{Endpoints: here, Prefix: "/a/b"}, prefix: "/a/b/"},
		"all of it":         {f: EtcdConfig{Endpoints: here, Prefix: "/"}, says: "invalid --etcd-prefix"},
		"a relative prefix": {f: EtcdConfig{Endpoints: here, Prefix: "a"}, says: "invalid --etcd-prefix"},
		"a hole":            {f: EtcdConfig{Endpoints: here, Prefix: "/a//b"}, says: "invalid --etcd-prefix"},
		"no TLS":            {f: EtcdConfig{Endpoints: "http://a:2379", Prefix: "/a"}, says: "no TLS"},
		"environment":       {f: EtcdConfig{Endpoints: here, Prefix: "/a"}, user: "u", secret: "p", prefix: "/a/", as: "u p"},
		"half of it":        {f: EtcdConfig{Endpoints: here, Prefix: "/a"}, user: "u", says: "needs a password"},
		"a file":            {f: EtcdConfig{Endpoints: here, Prefix: "/a", LoginFile: login("u:p:q\n")}, prefix: "/a/", as: "u p:q"},
		"file before":       {f: EtcdConfig{Endpoints: here, Prefix: "/a", LoginFile: login("u:p")}, user: "v", secret: "w", prefix: "/a/", as: "u p"},
		"no such file":      {f: EtcdConfig{Endpoints: here, Prefix: "/a", LoginFile: "/none"}, says: "no such file"},
		"an odd file":       {f: EtcdConfig{Endpoints: here, Prefix: "/a", LoginFile: login("secret")}, says: "not USER:PASSWORD"},
	} {
		t.Setenv(EtcdUserVariable, c.user)
		t.Setenv(EtcdPasswordVariable, c.secret)
		err := c.f.Check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err != nil {
			continue
		}
		a, err := c.f.access()
		if as := strings.TrimSpace(a.User + " " + a.Password.Reveal()); err != nil || c.f.Prefix != c.prefix || as != c.as {
			t.Errorf("%s: prefix %s, as %q (%v)", name, c.f.Prefix, as, err)
		}
		c.f.forget()
		if os.Getenv(EtcdPasswordVariable) != "" {
			t.Errorf("%s: databases would inherit the password", name)
		}
	}
}

func TestOutsideFile(t *testing.T) {
	data := t.TempDir()
	given, none := &EtcdConfig{Endpoints: "https://a:2379", Prefix: "/shop/"}, &EtcdConfig{Prefix: "/kurabe/"}
	kept := func() *externalEtcdRecord {
		t.Helper()
		r, err := loadExternalEtcd(data)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if seen, err := kept().seen(); err != nil || seen != (etcdnode.Seen{}) {
		t.Errorf("%+v, %v", seen, err)
	}
	for _, f := range []*EtcdConfig{given, none} {
		if err := checkExternalEtcd(data, f, kept()); err != nil {
			t.Error(err)
		}
	}
	want := etcdnode.Seen{Cluster: 1<<64 - 5, Revision: 7}
	if err := keepExternalEtcd(data, "/shop/", want); err != nil {
		t.Fatal(err)
	}
	if seen, err := kept().seen(); err != nil || seen != want {
		t.Errorf("%+v, %v", seen, err)
	}
	for _, c := range []struct {
		f    *EtcdConfig
		says string
	}{{given, ""}, {none, "start it with --etcd-endpoints"}, {&EtcdConfig{Endpoints: "https://a:2379", Prefix: "/other/"}, "--etcd-prefix says /other/"}} {
		if err := checkExternalEtcd(data, c.f, kept()); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
	if err := os.Mkdir(filepath.Join(data, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkExternalEtcd(data, given, nil); err == nil || !strings.Contains(err.Error(), "state of its own") {
		t.Error(err)
	}
	for _, odd := range []string{"", "{}", "["} {
		if err := os.WriteFile(filepath.Join(data, externalEtcdFile), []byte(odd), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadExternalEtcd(data); err == nil {
			t.Errorf("%q is taken for a record", odd)
		}
	}
}
