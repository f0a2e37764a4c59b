package script

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"kurabe/lab/study"
)

func TestScript(t *testing.T) {
	const values = "\\set a 5\n\\set b -3\n"
	cases := map[string]struct{ script, simple, postgres, mysql string }{
		"variables":         {values + "SELECT :a, :b;", "SELECT 5, -3", "SELECT $1, $2", "SELECT ?, ?"},
		"twice":             {values + "SELECT :a+:a;", "SELECT 5+5", "SELECT $1+$2", "SELECT ?+?"},
		"cast":              {values + "SELECT :a::int;", "SELECT 5::int", "SELECT $1::int", "SELECT ?::int"},
		"quotes":            {values + "SELECT ':a', \":a\", `:a`, ';', 'it''s :a';", "SELECT ':a', \":a\", `:a`, ';', 'it''s :a'", "", ""},
		"dollar quotes":     {values + "SELECT $$;:a$$, $x$ $$ ;:a $x$, :a;", "SELECT $$;:a$$, $x$ $$ ;:a $x$, 5", "", ""},
		"dollar in a name":  {values + "SELECT a$1$b, :a;", "SELECT a$1$b, 5", "", ""},
		"comments":          {values + "-- ; :c\nSELECT /* ; :c */ 1 -- ; :c\n, :a;", "SELECT /* ; :c */ 1  \n, 5", "", ""},
		"no colon variable": {"SELECT '12:30', 1 ::text, x := 2, a[1:2];", "SELECT '12:30', 1 ::text, x := 2, a[1:2]", "", ""},
		"no semicolon":      {"SELECT 1", "SELECT 1", "", ""},
		"empty statements":  {" ;; \nSELECT 1;;\n", "SELECT 1", "", ""},
		"windows lines":     {"\\set a 5\r\nSELECT :a;\r\n", "SELECT 5", "", ""},
		"continued line":    {"\\set a 2 + \\\n 3\nSELECT :a;", "SELECT 5", "", ""},
		"given":             {"SELECT :scale, :client_id;", "SELECT 7, 2", "", ""},
		"expressions":       {"\\set x (1 + 2) * 3 - 10 / 3 % 2 - -1\nSELECT :x;", "SELECT 9", "", ""},
		"from the left":     {"\\set x 10 - 3 - 2\n\\set y 100 / 10 / 2\nSELECT :x, :y;", "SELECT 5, 5", "", ""},
		"one value":         {"\\set x random(4, 2 * 2)\nSELECT :x;", "SELECT 4", "", ""},
		"largest":           {"\\set x 9223372036854775807\nSELECT :x;", "SELECT 9223372036854775807", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s Set
			if err := s.Add(c.script, 1); err != nil {
				t.Fatal(err)
			}
			vars := make([]int64, len(s.Variables))
			vars[0], vars[1] = 7, 2
			for _, x := range s.List[0].Commands {
				if x.Set != nil {
					v, err := x.Set.Value(vars, rand.New(rand.NewPCG(1, 1)))
					if err != nil {
						t.Fatal(err)
					}
					vars[x.Target] = v
				}
			}
			if got := string(s.Statements[0].AppendText(nil, vars)); len(s.Statements) != 1 || got != c.simple {
				t.Errorf("simple: %q", got)
			}
			if got := s.Statements[0].Parameterized(study.Postgres); c.postgres != "" && got != c.postgres {
				t.Errorf("postgres: %q", got)
			}
			if got := s.Statements[0].Parameterized(study.MariaDB); c.mysql != "" && got != c.mysql {
				t.Errorf("mysql: %q", got)
			}
		})
	}
}

func TestScriptErrors(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"unknown variable":   {"SELECT 1;\nSELECT :x;", "line 2: the variable :x has no value"},
		"set too late":       {"SELECT :x;\n\\set x 1", "line 1: the variable :x"},
		"unknown command":    {"SELECT 1;\n\n\\gset x", "line 3: \\gset: there are"},
		"command inside":     {"SELECT 1,\n\\set a 1\n2;", "stands inside of a statement"},
		"no expression":      {"\\set a\nSELECT 1;", "line 1: \\set a: the expression ends"},
		"no name":            {"\\set 1a 1\nSELECT 1;", "is no name"},
		"rest":               {"\\set a 1 2\nSELECT 1;", `"2" follows`},
		"open parenthesis":   {"\\set a (1\nSELECT 1;", `')' is missing`},
		"unknown function":   {"\\set a sqrt(2)\nSELECT 1;", "is no integer"},
		"random of one":      {"\\set a random(2)\nSELECT 1;", "',' is missing"},
		"too large":          {"\\set a 9223372036854775808\nSELECT 1;", "is above"},
		"too deep":           {"\\set a " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + "\nSELECT 1;", "nested deeper"},
		"signs":              {"\\set a " + strings.Repeat("-", 200) + "1\nSELECT 1;", "nested deeper"},
		"long sum":           {"\\set a 1" + strings.Repeat("+1", 200) + "\nSELECT 1;", "nested deeper"},
		"open quote":         {"SELECT 1;\nSELECT 'x;", "line 2: the quote ' has no end"},
		"open dollar quote":  {"SELECT $a$ x;", "the quote $a$ has no end"},
		"open comment":       {"SELECT /* x;", "the comment /* has no end"},
		"no statement":       {"\\set a 1", "no statement"},
		"unit":               {"\\sleep 3 h\nSELECT 1;", "none of us, ms, s"},
		"sleep what":         {"\\sleep 1+1 s\nSELECT 1;", "a number or a variable"},
		"not text":           {"SELECT '\xff';", "not UTF-8"},
		"too long":           {strings.Repeat(" ", maxBytes+1), "bytes are more than"},
		"too many commands":  {strings.Repeat("\\set a 1\n", commandsMax+1), "commands"},
		"too many":           {strings.Repeat("SELECT 1;", StatementsMax+1), "more than 99 statements"},
		"too many variables": {manyVariables(), "more than 200 variables"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s Set
			if err := s.Add(c.script, 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func manyVariables() string {
	var b strings.Builder
	for n := range variablesMax {
		b.WriteString("\\set a" + strings.Repeat("x", n%50) + string(rune('a'+n/50)) + " 1\n")
	}
	return b.String()
}

func TestCalculate(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	cases := map[string]struct {
		op   byte
		a, b int64
		want int64
		err  error
	}{
		"sum too large":       {'+', most, 1, 0, errRange},
		"sum too small":       {'+', least, -1, 0, errRange},
		"sum at the end":      {'+', most - 1, 1, most, nil},
		"less than least":     {'-', least, 1, 0, errRange},
		"minus least":         {'-', 0, least, 0, errRange},
		"least minus least":   {'-', least, least, 0, nil},
		"product too large":   {'*', most, 2, 0, errRange},
		"least negated":       {'*', -1, least, 0, errRange},
		"least negated again": {'*', least, -1, 0, errRange},
		"zero times":          {'*', 0, least, 0, nil},
		"by zero":             {'/', 1, 0, 0, errDivide},
		"rest by zero":        {'%', 1, 0, 0, errDivide},
		"least by minus one":  {'/', least, -1, 0, errRange},
		"negative rest":       {'%', -7, 3, -1, nil},
		"upside down":         {'r', 2, 1, 0, errRandom},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := calculate(c.op, c.a, c.b, rand.New(rand.NewPCG(1, 1)))
			if err != c.err || err == nil && got != c.want {
				t.Errorf("= %d, %v", got, err)
			}
		})
	}
}

func TestRandomCoversItsRange(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	seen := map[int64]int{}
	for range 6000 {
		v, err := between(-1, 1, chance)
		if err != nil {
			t.Fatal(err)
		}
		seen[v]++
	}
	if len(seen) != 3 || min(seen[-1], seen[0], seen[1]) < 1800 {
		t.Errorf("%v", seen)
	}
	if _, err := between(math.MinInt64, math.MaxInt64, chance); err != nil {
		t.Error(err)
	}
}

func FuzzScript(f *testing.F) {
	f.Add("\\set aid random(1, 100000 * :scale)\nBEGIN;\nUPDATE a SET b = b + 1 WHERE aid = :aid;\nINSERT INTO h VALUES (:aid, 'x', now());\nCOMMIT;")
	f.Add("\\set a random(-1, 2 * (3 % :scale))\nSELECT $a$ ; $a$, ':a', :a::int -- x\n;")
	f.Add("\\sleep :scale ms\nSELECT $1a$;")
	f.Fuzz(func(t *testing.T, text string) {
		var s Set
		if s.Add(text, 1) != nil {
			return
		}
		vars := make([]int64, len(s.Variables))
		chance := rand.New(rand.NewPCG(1, 1))
		for _, c := range s.List[0].Commands {
			if c.Set != nil {
				_, _ = c.Set.Value(vars, chance) // must end, and not panic
			}
			if c.Statement != nil {
				c.Statement.AppendText(nil, vars)
				if got := strings.Count(c.Statement.Parameterized(study.Postgres), "$"); got < len(c.Statement.Variables) {
					t.Errorf("%d marks for %d variables", got, len(c.Statement.Variables))
				}
			}
		}
	})
}
