package parameter

import (
	"testing"

	"kurabe"
)

// What the service gives by itself fits every class and the smallest storage, and what is a
// user's to set is known to the catalogue by the same name.
func TestDefaultsFit(t *testing.T) {
	for _, class := range kurabe.Classes() {
		const storage = 5 * kurabe.GiB
		vars := kurabe.FormulaVars{MemoryBytes: class.MemoryBytes, CPUs: max(class.CPUs, 1), StorageBytes: storage}
		settings := map[string]string{}
		for name, formula := range system {
			value, err := vars.Evaluate(formula)
			if err != nil {
				t.Fatal(err)
			}
			settings[name] = value
		}
		if e := Demands.Excess(settings, func(string) bool { return true }, kurabe.Sizes{MemoryBytes: class.MemoryBytes, StorageBytes: storage}); e != nil {
			t.Errorf("%s: %v", class.Name, e)
		}
	}
	for name, d := range Demands {
		if !looked()[name] {
			t.Errorf("%s is no user's to set", name)
		}
		for _, other := range d.Times {
			if _, known := Demands[other]; !known {
				t.Errorf("%s is multiplied by %s, whose default is not known", name, other)
			}
		}
	}
}
