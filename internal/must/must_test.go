package must

import "testing"

func TestTrue(t *testing.T) {
	True(true, "holds")
	defer func() {
		if got := recover(); got != "broken invariant: generation never decreases" {
			t.Fatalf("panic value = %v", got)
		}
	}()
	True(false, "generation never decreases")
	t.Fatal("did not panic")
}
