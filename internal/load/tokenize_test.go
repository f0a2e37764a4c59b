package load

import (
	"strings"
	"testing"
)

func TestTokenize(t *testing.T) {
	pg, my := dialect{}, dialect{mysql: true}
	for name, c := range map[string]struct {
		d        dialect
		in, want string
	}{
		"numbers":              {pg, "select a1, 1.5e-3, -2, 0x1F from t2", "select a1, ? from t2"},
		"signs":                {pg, "set a = a + -5, b = b -3 where c = -1 and d - 2 > +4", "set a = a + ?, b = b -? where c = ? and d - ? > ?"},
		"strings":              {pg, `select 'it''s', "Name 1", E'a\'b', U&'x'`, `select ?, "Name 1", ?, U&?`},
		"dollar":               {pg, "do $x$ secret 'a' $x$ , $$b$$", "do ?"},
		"parameter":            {pg, "select $1, $22::int", "select ?::int"},
		"comments":             {pg, "select /* a /* b */ c */ 1 -- d\n + 2", "select ? + ?"},
		"white space":          {pg, " select\n\t 1  ", "select ?"},
		"lists":                {pg, "insert into t values (1, 'a'), (2,'b'),(3 , 'c')", "insert into t values (?)"},
		"in":                   {pg, "select * from t where a in (1,2,3)", "select * from t where a in (?)"},
		"MariaDB strings":      {my, `select "a\"b", 'c\'d' , ` + "`e 1`" + ` # f`, "select ? , `e 1`"},
		"MariaDB comment":      {my, "select /* a /* b */ 1", "select ?"},
		"cut string":           {pg, "select 'my secr", "select ?"},
		"cut identifier":       {pg, `select "my secr`, "select ?"},
		"cut dollar":           {pg, "do $a$ my secr", "do ?"},
		"cut comment":          {pg, "select 1 /* my secr", "select ?"},
		"cut backslash":        {my, `select 'a\`, "select ?"},
		"not ASCII":            {pg, "select 値 from 表 where x = '秘密'", "select 値 from 表 where x = ?"},
		"prefix":               {my, "select _utf8'a', x'ff', b'1'", "select ?"},
		"dollar in a name":     {pg, "select a$1 from t", "select a$1 from t"},
		"mysql keeps the case": {my, "SELECT * FROM T LIMIT 5", "SELECT * FROM T LIMIT ?"},
	} {
		if got := tokenize(c.in, c.d); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	for _, statement := range []string{
		"ALTER USER app PASSWORD 'hush'",
		"create role x login encrypted password 'hush'",
		"CREATE USER x IDENTIFIED BY 'hush'",
		"set password for x = password('hush')",
		"create subscription s connection 'host=a password=hush'",
		"change master to master_password='hush'",
		"create user mapping for x server y options (password 'hush')",
		"select dblink_connect('host=a password=hush')",
		"select pgp_sym_encrypt(a, 'hush') from t",
	} {
		if got := textOf(statement, "", dialect{}, false); strings.Contains(got.Statement, "hush") {
			t.Errorf("%q is kept as %q", statement, got.Statement)
		}
	}
	if got := textOf("select 'a'", "", dialect{}, true); got.Statement != "select ?" {
		t.Errorf("masked: %q", got.Statement)
	}
}

func FuzzTokenize(f *testing.F) {
	f.Add("select 'a', $1, $x$b$x$ /* c */ \"d\" `e` -- f", false)
	f.Fuzz(func(t *testing.T, in string, mysql bool) {
		textOf(in, "", dialect{mysql: mysql}, false)
	})
}
