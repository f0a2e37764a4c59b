package kurabe

import "testing"

// A password keeps its name wherever it goes, and no two have one.
func TestPasswordNote(t *testing.T) {
	first := Password{Seq: 2}
	for name, got := range map[string]string{
		"at its instance":      first.Note("db-A"),
		"at a server of it":    first.Note("db-A~2"),
		"taken over":           first.From("db-A~2").Note("db-B"),
		"taken over once more": first.From("db-A").From("db-B").Note("db-C"),
	} {
		if got != "db-A 2" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := (Password{Seq: 2}).Note("db-B"); got == "db-A 2" {
		t.Error("two passwords have one name")
	}
}
