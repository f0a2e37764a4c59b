package tokenize

import "testing"

func TestTokenize(t *testing.T) {
	pg, my := Dialect{}, Dialect{MySQL: true, Backslash: true}
	for name, c := range map[string]struct {
		d        Dialect
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
		"PostgreSQL's escapes": {Dialect{Backslash: true}, `select 'a\'b' , c`, "select ? , c"},
		"MariaDB's without":    {Dialect{MySQL: true}, `select 'a\' , "b\" , c`, "select ? , c"},
		"prefix":               {my, "select _utf8'a', x'ff', b'1'", "select ?"},
		"dollar in a name":     {pg, "select a$1 from t", "select a$1 from t"},
		"mysql keeps the case": {my, "SELECT * FROM T LIMIT 5", "SELECT * FROM T LIMIT ?"},
	} {
		if got := Statement(c.in, c.d); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzTokenize(f *testing.F) {
	f.Add("select 'a', $1, $x$b$x$ /* c */ \"d\" `e` -- f", false, false)
	f.Fuzz(func(t *testing.T, in string, mysql, backslash bool) {
		Statement(in, Dialect{MySQL: mysql, Backslash: backslash})
	})
}
