package filter

import (
	"fmt"
	"strings"
	"testing"

	"kurabe"
)

// attributes makes message attributes: text, #number, or [array.
func attributes(pairs ...string) map[string]kurabe.MessageAttribute {
	out := map[string]kurabe.MessageAttribute{}
	for n := 0; n < len(pairs); n += 2 {
		a := kurabe.MessageAttribute{Type: "String", Text: pairs[n+1]}
		if number, ok := strings.CutPrefix(a.Text, "#"); ok {
			a = kurabe.MessageAttribute{Type: "Number", Text: number}
		} else if strings.HasPrefix(a.Text, "[") {
			a.Type = "String.Array"
		}
		out[pairs[n]] = a
	}
	return out
}

func TestAttributes(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		want         bool
		attributes   map[string]kurabe.MessageAttribute
	}{
		{"empty policy", `{}`, true, attributes()},
		{"exact", `{"store":["a","b"]}`, true, attributes("store", "b")},
		{"another", `{"store":["a"]}`, false, attributes("store", "b")},
		{"absent", `{"store":["a"]}`, false, attributes("other", "a")},
		{"five digits behind the point", `{"n":[100.123456789]}`, true, attributes("n", "#100.1234567")},
		{"the fifth digit", `{"n":[100.12345]}`, false, attributes("n", "#100.12346")},
		{"all keys", `{"store":["a"],"kind":["x"]}`, false, attributes("store", "a", "kind", "y")},
		{"prefix", `{"k":[{"prefix":"bas"}]}`, true, attributes("k", "baseball")},
		{"suffix", `{"k":[{"suffix":"ball"}]}`, true, attributes("k", "baseball")},
		{"not the suffix", `{"k":[{"suffix":"bal"}]}`, false, attributes("k", "baseball")},
		{"case", `{"k":[{"equals-ignore-case":"TENNIS"}]}`, true, attributes("k", "tennis")},
		{"anything but", `{"k":[{"anything-but":["a","b"]}]}`, false, attributes("k", "a")},
		{"anything but one", `{"k":[{"anything-but":"a"}]}`, true, attributes("k", "c")},
		{"anything but needs a value", `{"k":[{"anything-but":"a"}]}`, false, attributes()},
		{"anything but a number", `{"k":[{"anything-but":[100]}]}`, false, attributes("k", "#1e2")},
		{"anything but a prefix", `{"k":[{"anything-but":{"prefix":"order-"}}]}`, false, attributes("k", "order-1")},
		{"number", `{"k":[301.5]}`, true, attributes("k", "#3.015e2")},
		{"number is no text", `{"k":[301]}`, false, attributes("k", "301")},
		{"range", `{"k":[{"numeric":[">",0,"<=",150]}]}`, true, attributes("k", "#150")},
		{"outside", `{"k":[{"numeric":[">",0,"<=",150]}]}`, false, attributes("k", "#0")},
		{"exists", `{"k":[{"exists":true}]}`, true, attributes("k", "")},
		{"exists not", `{"k":[{"exists":false}]}`, true, attributes()},
		{"exists although not", `{"k":[{"exists":false}]}`, false, attributes("k", "a")},
		{"absent or a value", `{"k":["a",{"exists":false}]}`, true, attributes()},
		{"cidr", `{"k":[{"cidr":"10.0.0.0/24"}]}`, true, attributes("k", "10.0.0.255")},
		{"outside of the cidr", `{"k":[{"cidr":"10.0.0.0/24"}]}`, false, attributes("k", "10.1.1.0")},
		{"one of an array", `{"k":["rugby"]}`, true, attributes("k", `["football","rugby"]`)},
		{"none of an array", `{"k":["rugby"]}`, false, attributes("k", `["football",1,null]`)},
		{"number of an array", `{"k":[{"numeric":["=",1]}]}`, true, attributes("k", `["football",1]`)},
		{"empty array", `{"k":[{"exists":true}]}`, true, attributes("k", `[]`)},
		{"or", `{"$or":[{"a":["1"]},{"b":["2"]}]}`, true, attributes("b", "2")},
		{"neither", `{"$or":[{"a":["1"]},{"b":["2"]}]}`, false, attributes("a", "2")},
		{"or and", `{"k":["x"],"$or":[{"a":["1"]},{"b":["2"]}]}`, false, attributes("b", "2")},
		{"a key called $or", `{"$or":["x"]}`, true, attributes("$or", "x")},
		{"binary is there", `{"k":[{"exists":true}]}`, true, map[string]kurabe.MessageAttribute{"k": {Type: "Binary", Binary: []byte("a")}}},
		{"binary equals nothing", `{"k":["a"]}`, false, map[string]kurabe.MessageAttribute{"k": {Type: "Binary", Binary: []byte("a")}}},
	} {
		p, err := Parse(c.policy, false)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := p.Attributes(c.attributes); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		want         bool
		body         string
	}{
		{"empty policy", `{}`, true, `{"a":1}`},
		{"no JSON", `{}`, false, `text`},
		{"a list", `{}`, false, `[1]`},
		{"nested", `{"detail":{"state":["ALARM"]}}`, true, `{"detail":{"state":"ALARM","x":1}}`},
		{"nested in a list", `{"detail":{"state":["ALARM"]}}`, true, `{"detail":[{"state":"OK"},{"state":"ALARM"}]}`},
		{"nested, absent", `{"detail":{"state":["ALARM"]}}`, false, `{"detail":"ALARM"}`},
		{"absent wanted", `{"detail":{"state":[{"exists":false}]}}`, true, `{}`},
		{"null", `{"a":[null]}`, true, `{"a":null}`},
		{"true", `{"a":[true]}`, false, `{"a":"true"}`},
		{"number", `{"a":[{"numeric":["<",-1]}]}`, true, `{"a":-1.5}`},
		{"either", `{"a":{"$or":[{"b":["1"]},{"c":["2"]}]}}`, true, `{"a":{"c":["0","2"]}}`},
		{"an object is no value", `{"a":["1"]}`, false, `{"a":{"b":"1"}}`},
	} {
		p, err := Parse(c.policy, true)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := p.Body(c.body); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	many := make([]string, combinationsMax+1)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	for policy, why := range map[string]string{
		`x`: "no JSON object", `{} {}`: "follows", `{"a":"b"}`: "must be a list", `{"a":{"b":["c"]}}`: "FilterPolicyScope",
		`{"a":[]}`: "empty", `{"a":[{"wildcard":"a*"}]}`: "unknown operator", `{"a":[{"prefix":"a","suffix":"b"}]}`: "one operator",
		`{"a":[{"numeric":[">"]}]}`: "numeric takes", `{"a":[{"numeric":[">",1,">",2]}]}`: "lower and an upper", `{"a":[1e10]}`: "not from",
		`{"a":[{"exists":"x"}]}`: "true or false", `{"a":[{"cidr":"10"}]}`: "block of addresses", `{"a":[["b"]]}`: "a value is",
		`{"a":["1"],"b":["1"],"c":["1"],"d":["1"],"e":["1"],"f":["1"]}`: "more than 5 keys", `{"a":[` + strings.Join(many, ",") + `]}`: "combinations",
	} {
		if _, err := Parse(policy, false); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60s: %v; want %q", policy, err, why)
		}
	}
	if _, err := Parse(strings.Repeat(`{"a":`, 11)+`["x"]`+strings.Repeat("}", 11), true); err == nil {
		t.Error("a deep policy is accepted")
	}
}

// A policy that was accepted answers for every message.
func FuzzPolicy(f *testing.F) {
	f.Add(`{"a":[{"numeric":[">",0,"<=",5]}],"$or":[{"b":["x"]},{"c":[{"exists":false}]}]}`, `{"a":[[1]],"b":{}}`)
	f.Add(`{"a":{"b":[{"anything-but":{"suffix":"x"}},null]}}`, `{"a":[{"b":null}]}`)
	f.Fuzz(func(t *testing.T, policy, message string) {
		for _, nested := range []bool{true, false} {
			if p, err := Parse(policy, nested); err == nil {
				p.Body(message)
				p.Attributes(map[string]kurabe.MessageAttribute{"a": {Type: "String.Array", Text: message}, "b": {Type: "Number", Text: message}})
			}
		}
	})
}
