package harness

import (
	"errors"
	"slices"
	"testing"
)

// What fails a test is an error of the program, and what was made before goes in any case.
func TestOutside(t *testing.T) {
	o := NewStandalone(t.Context(), t.Logf)
	var gone []string
	clean := func(name string) func() { return func() { gone = append(gone, name) } }
	err := o.Try(func(tb testing.TB) {
		tb.Cleanup(clean("first"))
		tb.Cleanup(func() { tb.Fatal("the second does not go") })
		tb.Cleanup(clean("third"))
		try(tb, nil)
		try(tb, errors.New("no such machine"))
		tb.Cleanup(clean("never made"))
	})
	if err == nil || err.Error() != "no such machine" {
		t.Errorf("error %v", err)
	}
	if err := o.Close(); err == nil || err.Error() != "the second does not go" {
		t.Errorf("error at the end %v", err)
	}
	if want := []string{"third", "first"}; !slices.Equal(gone, want) {
		t.Errorf("gone are %q, want %q", gone, want)
	}
	if err := o.Try(func(testing.TB) {}); err != nil {
		t.Error(err)
	}
}
