package resulttest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"kurabe/lab/result"
)

// A made-up file passes every check that a real one does.
func TestWriteAndRead(t *testing.T) {
	for name, o := range map[string]Options{
		"general-log": {Blocks: 7},
		"alter":       {Alter: true, Blocks: 6},
		"only begun":  {Blocks: -1},
		"clean":       {Blocks: 3, Clean: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := File(1, o)
			path := filepath.Join(t.TempDir(), "study.jsonl")
			if err := Write(path, f); err != nil {
				t.Fatal(err)
			}
			back, err := result.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := asJSON(t, f), asJSON(t, back); a != b {
				t.Error("what was read is not what was made")
			}
			if again := File(1, o); asJSON(t, again) != asJSON(t, f) {
				t.Error("the same seed made another file")
			}
			statuses := map[string]int{}
			for _, trial := range f.Trials {
				statuses[trial.Status]++
			}
			odd := statuses[result.StatusFailed] + statuses[result.StatusRepeated] + statuses[result.StatusUnsettled]
			if want := 3; !o.Clean && o.Blocks > 0 && odd != want || (o.Clean || o.Blocks < 0) && odd != 0 {
				t.Errorf("statuses %v", statuses)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
