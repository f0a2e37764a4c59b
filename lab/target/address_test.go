package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

func TestParseAddress(t *testing.T) {
	cases := map[string]struct {
		text string
		want dial.Server
		bad  bool
	}{
		"all of it":          {text: "postgres://ann:s%40%2Fx@db.example:5433/shop?sslmode=require", want: dial.Server{Engine: study.Postgres, Host: "db.example", Port: 5433, User: "ann", Password: "s@/x", Database: "shop", TLS: true}},
		"the least":          {text: "postgresql://ann@db", want: dial.Server{Engine: study.Postgres, Host: "db", Port: 5432, User: "ann"}},
		"mysql":              {text: "mysql://ann:x@db/?tls=true", want: dial.Server{Engine: study.MySQL, Host: "db", Port: 3306, User: "ann", Password: "x", TLS: true}},
		"mariadb":            {text: "mariadb://ann:x@[::1]:3307/shop", want: dial.Server{Engine: study.MariaDB, Host: "::1", Port: 3307, User: "ann", Password: "x", Database: "shop"}},
		"no user":            {text: "postgres://db/shop", bad: true},
		"no host":            {text: "postgres://ann:secret-word@/shop", bad: true},
		"another scheme":     {text: "http://ann:secret-word@db/shop", bad: true},
		"no number":          {text: "postgres://ann:secret-word@db:port/shop", bad: true},
		"port too large":     {text: "postgres://ann:secret-word@db:70000/shop", bad: true},
		"unquoted letters":   {text: "postgres://ann:secret-word/%zz@db/shop", bad: true},
		"verified":           {text: "postgres://ann:secret-word@db/shop?sslmode=verify-full", bad: true},
		"an unknown setting": {text: "postgres://ann:secret-word@db/shop?password=secret-word", bad: true},
		"two databases":      {text: "postgres://ann:secret-word@db/shop/other", bad: true},
		"too long":           {text: "postgres://ann:secret-word@db/" + strings.Repeat("x", addressBytesMax), bad: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseAddress(c.text)
			if (err != nil) != c.bad {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				if strings.Contains(err.Error(), "secret-word") {
					t.Fatalf("the error holds the password: %v", err)
				}
				return
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("postgres://ann:x@db:1/shop?sslmode=require", "x")
	f.Add("mysql://a:%00@[::1]", "")
	f.Fuzz(func(t *testing.T, text, password string) {
		s, err := parseAddress(text)
		if err == nil && (s.Host == "" || s.User == "" || s.Port < 1 || s.Port > 65535 || s.Engine == "") {
			t.Errorf("accepted %+v", s)
		}
		const mark = "Zq7-mark-9"
		if _, err := parseAddress("postgres://u:" + mark + "@" + text); err != nil && strings.Contains(err.Error(), mark) {
			t.Errorf("the error holds the password: %v", err)
		}
	})
}

func TestFindPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSWORD", "of-environment")
	t.Setenv("MYSQL_PWD", "of-mysql")
	cases := map[string]struct {
		server dial.Server
		file   string
		want   dial.Secret
	}{
		"of the URL":      {server: dial.Server{Engine: study.Postgres, Password: "of-url"}, file: file, want: "of-url"},
		"of the file":     {server: dial.Server{Engine: study.Postgres}, file: file, want: "of-file"},
		"of libpq's":      {server: dial.Server{Engine: study.Postgres}, want: "of-environment"},
		"of the client's": {server: dial.Server{Engine: study.MariaDB}, want: "of-mysql"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := findPassword(&c.server, c.file); err != nil {
				t.Fatal(err)
			}
			if string(c.server.Password) != string(c.want) {
				t.Errorf("another password")
			}
		})
	}
}
