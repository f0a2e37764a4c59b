package must

// True panics with why unless cond holds. why states the invariant, not the
// symptom: "generation never decreases", not "bad generation".
func True(cond bool, why string) {
	if !cond {
		panic("broken invariant: " + why)
	}
}
