package guard

import (
	"errors"
	"fmt"
	"testing"
)

func TestDecodeAnswer(t *testing.T) {
	cases := map[string]struct{ body, want string }{
		"no rows":       {"O\x00\x00\x00\x00\x00\x00\x00\x01", "[] <nil>"},
		"rows":          {"R\x00\x00\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x02bc", "[[a ] [ bc]] <nil>"},
		"an error":      {"E\x00\x00\x04\x28no such thing", "[] error 1064: no such thing"},
		"cut off":       {"R\x00\x00\x00\x01\x00\x00\x00\x05abc", "[] the guard's answer is cut off"},
		"empty":         {"", "[] the guard's answer is cut off"},
		"unknown":       {"?", "[] the guard's answer is of an unknown kind"},
		"without width": {"R\x00\x00\x00\x00x", "[] the guard's answer is cut off"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rows, err := decodeAnswer([]byte(c.body))
			if got := fmt.Sprint(rows, " ", err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzDecodeAnswer(f *testing.F) {
	f.Add([]byte("R\x00\x00\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, err := decodeAnswer(body)
		if err != nil && rows != nil && !errors.Is(err, errShortAnswer) {
			t.Error("rows with an error")
		}
	})
}
