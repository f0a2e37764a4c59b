package result

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAppendIsThereWhenItReturns(t *testing.T) {
	w, path := begin(t)
	records := []any{
		Env{Host: map[string]string{"cpu": "<x> & y"}}, &Settings{Variant: "on", Values: map[string]string{"fsync": "on"}},
		okTrial(1, "off", 100), &Event{Block: 1, Variant: "off", Workload: "w", AtMs: 3, Kind: "checkpoint"},
		End{At: time.Unix(0, 0).UTC(), Reason: "precise"},
	}
	for i, record := range records {
		if err := w.Append(record); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || strings.Count(string(data), "\n") != i+2 {
			t.Fatalf("after record %d the file has %d lines: %v", i, strings.Count(string(data), "\n"), err)
		}
	}
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Env) != 1 || f.Settings["on"]["fsync"] != "on" || len(f.Trials) != 1 || len(f.Events) != 1 || len(f.Ends) != 1 {
		t.Errorf("%+v", f)
	}
	if encoded(t, f.Study) != encoded(t, smallStudy()) {
		t.Errorf("the study became %s", encoded(t, f.Study))
	}
}

func TestCreateRefuses(t *testing.T) {
	_, path := begin(t)
	if _, err := Create(path, smallStudy()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if _, err := Create(filepath.Join(t.TempDir(), "none", "x"), smallStudy()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	bad := smallStudy()
	bad.Definition.Baseline = "none"
	path = filepath.Join(t.TempDir(), "x")
	if _, err := Create(path, bad); err == nil || !strings.Contains(err.Error(), "baseline") {
		t.Errorf("a study without its baseline: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a study that was refused is there: %v", err)
	}
}

func TestAppendRefuses(t *testing.T) {
	w, path := begin(t)
	nan := okTrial(1, "off", 1)
	nan.Phases[0].Load.Seconds = math.NaN()
	infinite := okTrial(1, "off", 1)
	infinite.Phases[0].Probes = map[string]float64{"cpu_s": math.Inf(1)}
	long := okTrial(1, "off", 1)
	long.Phases[0].Load.Bins = make([]int64, maxBins)
	long.Phases[0].Load.BinsMax = make([]float64, maxBins)
	for i := range long.Phases[0].Load.Bins {
		long.Phases[0].Load.Bins[i] = 123
	}
	failed := okTrial(1, "off", 1)
	failed.Status, failed.Phases, failed.Reason = StatusFailed, nil, "the server\nis gone"
	for name, c := range map[string]struct {
		record any
		want   string
	}{
		"NaN":               {nan, "phases[0].load.seconds: NaN is no number"},
		"infinite":          {infinite, "phases[0].probes.cpu_s: +Inf is no number"},
		"a study":           {smallStudy(), "no record of a file that has begun"},
		"a pointer to one":  {&Study{}, "no record of a file that has begun"},
		"no record":         {7, "no record"},
		"nothing":           {nil, "no record"},
		"of another study":  {okTrial(1, "other", 1), `variant: the study has no "other"`},
		"a line too long":   {long, "longer than"},
		"a failed one goes": {failed, ""},
	} {
		err := w.Append(c.record)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}
	f, err := Read(path)
	if err != nil || len(f.Trials) != 1 || f.Trials[0].Reason != "the server\nis gone" {
		t.Errorf("what was refused is in the file: %v", err)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	w, path := begin(t)
	if _, _, err := Resume(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a file that is being written was resumed: %v", err)
	}
	if _, err := Read(path); err != nil {
		t.Errorf("reading needs no lock: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(okTrial(1, "off", 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	again, _, err := Resume(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(text string) string
		trials int
	}{
		"whole":                  {func(s string) string { return s }, 2},
		"half a line":            {func(s string) string { return s + `{"t":"trial","prev":"0123` }, 2},
		"the last is cut":        {func(s string) string { return s[:len(s)-20] }, 1},
		"only its end is":        {func(s string) string { return s[:len(s)-1] }, 2},
		"zeros":                  {func(s string) string { return s + strings.Repeat("\x00", 5000) }, 2},
		"zeros and a line's end": {func(s string) string { return s + "\x00\x00\n" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, path := begin(t)
			for _, n := range []int64{1, 2} {
				if err := w.Append(okTrial(int(n), "off", n)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.damage(string(data))), 0o644); err != nil {
				t.Fatal(err)
			}
			w, f, err := Resume(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Trials) != c.trials {
				t.Errorf("%d trials, want %d", len(f.Trials), c.trials)
			}
			if err := errors.Join(w.Append(okTrial(9, "on", 9)), w.Close()); err != nil {
				t.Fatal(err)
			}
			back, err := Read(path)
			if err != nil || len(back.Trials) != c.trials+1 || back.Torn != 0 {
				t.Errorf("after resuming: %v", err)
			}
		})
	}
}

func TestResumeRefuses(t *testing.T) {
	good := chain(t, lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(1, "off", 9)), lineOf(t, KindTrial, okTrial(1, "on", 9)))
	for name, text := range map[string]string{
		"an empty file": "", "half a study": good[:40], "a broken chain": strings.Replace(good, `"transactions":9`, `"transactions":8`, 1),
		"damage in the middle": strings.Replace(good, `"ok"`, "\"o\x00\"", 1),
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(path); err == nil {
			t.Errorf("%s was resumed", name)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

func TestAppendByMany(t *testing.T) {
	w, path := begin(t)
	const each = 10
	errs := make(chan error, 4*each)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range each {
				errs <- w.Append(Event{Block: 1 + i, Variant: "on", Workload: "w", Kind: fmt.Sprintf("k%d", n)})
			}
		})
	}
	group.Wait()
	for range 4 * each {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if f, err := Read(path); err != nil || len(f.Events) != 4*each {
		t.Errorf("%v", err)
	}
}

// After a write in doubt nothing may follow: it could stand behind half a line.
func TestAppendAfterFailedWrite(t *testing.T) {
	w, path := begin(t)
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.f.Close(); err != nil {
		t.Fatal(err)
	}
	w.f = readOnly
	if err := w.Append(okTrial(1, "off", 1)); err == nil {
		t.Fatal("a write to a file that is only read succeeded")
	}
	if err := w.Append(okTrial(1, "off", 1)); err == nil || !strings.Contains(err.Error(), "in doubt") {
		t.Errorf("the next write: %v", err)
	}
}
