package result

import (
	"fmt"
	"os"
)

// File is a whole file as it was read.
type File struct {
	Study Study
	// Env has a record for every time that the run was started or resumed.
	Env []Env
	// Settings are by variant, then by name; the last that were recorded.
	Settings map[string]map[string]string
	Trials   []Trial // in the order in which they ran
	Events   []Event
	Ends     []End
	// Torn is the length in bytes of a last line that a crash left incomplete. It is
	// not part of the above.
	Torn int
}

// Counts tells whether a trial of that status takes part in the figures.
func Counts(status string) bool { return status == StatusOK || status == StatusUnsettled }

// Counts tells whether a trial takes part in the figures.
func (t *Trial) Counts() bool { return Counts(t.Status) }

// Phase returns the phase of that name; nil without one.
func (t *Trial) Phase(name string) *Phase {
	for i := range t.Phases {
		if t.Phases[i].Name == name {
			return &t.Phases[i]
		}
	}
	return nil
}

// Main is the phase that a metric without a phase in its name is of: measure, or idle
// in a study with changes; nil in a trial that did not come that far.
func (t *Trial) Main() *Phase {
	if p := t.Phase(PhaseMeasure); p != nil {
		return p
	}
	return t.Phase(PhaseIdle)
}

// Read reads a file and checks all of it.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	defer f.Close() // only read
	file, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("read results of %s: %w", path, err)
	}
	return file, nil
}
