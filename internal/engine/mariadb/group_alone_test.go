package mariadb

import "testing"

func TestLacks(t *testing.T) {
	for _, c := range []struct {
		name, state, applied, own string
		want                      int64
		known                     bool
	}{
		{"it has all", "0-1-90,0-2-105", "0-1-90", "0-1-90", 0, true},
		{"a tail of the first writer", "0-1-90,0-2-105", "0-1-90", "0-1-93", 3, true},
		{"a tail after a change and back", "0-1-100,0-2-150,0-2-170", "", "0-1-160,0-2-150", 10, true},
		{"the source is new and has nothing of it in its log", "0-2-105", "0-1-90", "0-1-93", 3, true},
		{"the source wrote before, too", "0-2-120,0-1-90", "", "0-1-95,0-2-80", 5, true},
		{"another domain says nothing", "0-1-90,7-1-500", "", "0-1-91,7-1-400", 1, true},
		{"nothing in common", "0-2-105", "", "0-1-93", 0, false},
		{"no log", "0-1-90", "", "", 0, false},
	} {
		h, err := parseHistory(c.state, c.applied)
		own, ownErr := parseGTIDs(c.own)
		if err != nil || ownErr != nil {
			t.Fatal(err, ownErr)
		}
		if got, known := h.lacks(own); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, known, c.want, c.known)
		}
	}
}
