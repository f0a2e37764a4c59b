package my

import (
	"reflect"
	"testing"
)

func words(text string, noEscapes bool) (all []string) {
	x := Lexer{Rest: []byte(text), NoEscapes: noEscapes}
	for w := x.Next(); w.Kind != End; w = x.Next() {
		all = append(all, string("_nbt9@%s"[w.Kind])+string(w.Text))
	}
	return all
}

func TestWords(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		noEscapes bool
		want      []string
	}{
		"names":                 {"select a.b1, `c d`", false, []string{"nselect", "na", "s.", "nb1", "s,", "bc d"}},
		"texts":                 {`'it''s' "a\"b" 'c\\'`, false, []string{"tit''s", `ta\"b`, `tc\\`}},
		"texts without escapes": {`'a\' @x`, true, []string{`ta\`, "@x"}},
		"texts with escapes":    {`'a\' @x`, false, []string{`ta\' @x`}},
		"variables":             {"@a := @@session.sql_mode, @`b c`, @@`x`", false, []string{"@a", "s:", "s=", "%session", "s.", "nsql_mode", "s,", "@b c", "s,", "%", "bx"}},
		"an account":            {"grant to app@localhost, 'x'@'%', `y`@`z`", false, []string{"ngrant", "nto", "napp", "s@", "nlocalhost", "s,", "tx", "s@", "t%", "s,", "by", "s@", "bz"}},
		"a variable behind":     {"select @a", false, []string{"nselect", "@a"}},
		"comments":              {"a /* b ' */ c -- d '\n e # f\n--g", false, []string{"na", "nc", "ne", "s-", "s-", "ng"}},
		"comments that execute": {"/*!50000 get_lock*/ /*M!100 set */ x", false, []string{"nget_lock", "nset", "nx"}},
		"no comment's end":      {"a*/*'*/ get_lock", false, []string{"na", "s*", "nget_lock"}},
		"unfinished":            {"'abc", false, []string{"tabc"}},
		"unfinished comment":    {"a /* b", false, []string{"na"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(c.text, c.noEscapes); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestLexingAllocatesNothing(t *testing.T) {
	text := []byte("UPDATE sbtest1 SET k = k + 1, c = 'a text that is quoted' WHERE id = 4711 AND @@x = `y`")
	n := testing.AllocsPerRun(100, func() {
		x := Lexer{Rest: text}
		for w := x.Next(); w.Kind != End; w = x.Next() {
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzLexer(f *testing.F) {
	f.Add([]byte("/*!50000 select */ @a, @@b, 'c''d', `e` -- f\n x@y"), true)
	f.Fuzz(func(t *testing.T, text []byte, noEscapes bool) {
		x := Lexer{Rest: text, NoEscapes: noEscapes}
		for range len(text) + 1 {
			if x.Next().Kind == End {
				return
			}
		}
		t.Error("more words than bytes")
	})
}
