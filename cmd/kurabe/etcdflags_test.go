package main

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
		f            etcdFlags
		user, secret string // of the environment
		says         string
		prefix, as   string
	}{
		"none":              {f: etcdFlags{prefix: "/kurabe/"}, prefix: "/kurabe/"},
		"no endpoints":      {f: etcdFlags{prefix: "/kurabe/", caFile: "ca"}, says: "name its members"},
		"a prefix of none":  {f: etcdFlags{prefix: "/shop/"}, says: "name its members"},
		"two":               {f: etcdFlags{endpoints: here, prefix: "/kurabe/"}, prefix: "/kurabe/"},
		"an open prefix":    {f: etcdFlags{endpoints: here, prefix: "/a/b"}, prefix: "/a/b/"},
		"all of it":         {f: etcdFlags{endpoints: here, prefix: "/"}, says: "no prefix"},
		"a relative prefix": {f: etcdFlags{endpoints: here, prefix: "a"}, says: "no prefix"},
		"a hole":            {f: etcdFlags{endpoints: here, prefix: "/a//b"}, says: "no prefix"},
		"no TLS":            {f: etcdFlags{endpoints: "http://a:2379", prefix: "/a"}, says: "no TLS"},
		"environment":       {f: etcdFlags{endpoints: here, prefix: "/a"}, user: "u", secret: "p", prefix: "/a/", as: "u p"},
		"half of it":        {f: etcdFlags{endpoints: here, prefix: "/a"}, user: "u", says: "needs a password"},
		"a file":            {f: etcdFlags{endpoints: here, prefix: "/a", loginFile: login("u:p:q\n")}, prefix: "/a/", as: "u p:q"},
		"file before":       {f: etcdFlags{endpoints: here, prefix: "/a", loginFile: login("u:p")}, user: "v", secret: "w", prefix: "/a/", as: "u p"},
		"no such file":      {f: etcdFlags{endpoints: here, prefix: "/a", loginFile: "/none"}, says: "no such file"},
		"an odd file":       {f: etcdFlags{endpoints: here, prefix: "/a", loginFile: login("secret")}, says: "not USER:PASSWORD"},
	} {
		t.Setenv(etcdUserVariable, c.user)
		t.Setenv(etcdPasswordVariable, c.secret)
		err := c.f.check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err != nil {
			continue
		}
		a, err := c.f.access()
		if as := strings.TrimSpace(a.User + " " + a.Password.Reveal()); err != nil || c.f.prefix != c.prefix || as != c.as {
			t.Errorf("%s: prefix %s, as %q (%v)", name, c.f.prefix, as, err)
		}
		c.f.forget()
		if os.Getenv(etcdPasswordVariable) != "" {
			t.Errorf("%s: databases would inherit the password", name)
		}
	}
}

func TestOutsideFile(t *testing.T) {
	data := t.TempDir()
	given, none := &etcdFlags{endpoints: "https://a:2379", prefix: "/shop/"}, &etcdFlags{prefix: "/kurabe/"}
	kept := func() *outsideRecord {
		t.Helper()
		r, err := loadOutside(data)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if seen, err := kept().seen(); err != nil || seen != (etcdnode.Seen{}) {
		t.Errorf("%+v, %v", seen, err)
	}
	for _, f := range []*etcdFlags{given, none} {
		if err := checkOutside(data, f, kept()); err != nil {
			t.Error(err)
		}
	}
	want := etcdnode.Seen{Cluster: 1<<64 - 5, Revision: 7}
	if err := keepOutside(data, "/shop/", want); err != nil {
		t.Fatal(err)
	}
	if seen, err := kept().seen(); err != nil || seen != want {
		t.Errorf("%+v, %v", seen, err)
	}
	for _, c := range []struct {
		f    *etcdFlags
		says string
	}{{given, ""}, {none, "start it with --etcd-endpoints"}, {&etcdFlags{endpoints: "https://a:2379", prefix: "/other/"}, "--etcd-prefix says /other/"}} {
		if err := checkOutside(data, c.f, kept()); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
	if err := os.Mkdir(filepath.Join(data, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkOutside(data, given, nil); err == nil || !strings.Contains(err.Error(), "state of its own") {
		t.Error(err)
	}
	for _, odd := range []string{"", "{}", "["} {
		if err := os.WriteFile(filepath.Join(data, outsideFile), []byte(odd), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadOutside(data); err == nil {
			t.Errorf("%q is taken for a record", odd)
		}
	}
}
