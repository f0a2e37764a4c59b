package kurabe

import "testing"

func TestEvaluate(t *testing.T) {
	v := FormulaVars{MemoryBytes: GiB, CPUs: 2, StorageBytes: 20 * GiB, Port: 5432}
	for _, c := range []struct{ name, in, want string }{
		{"plain value", "on", "on"},
		{"quarter of memory in 8 kB", "{DBInstanceClassMemory/32768}", "32768"},
		{"least", "LEAST({DBInstanceClassMemory/9531392},5000)", "112"},
		{"greatest", "GREATEST({DBInstanceClassMemory*1024/63963136},65536)", "65536"},
		{"log base two", "GREATEST({log(DBInstanceClassMemory/805306368)*45},5)", "18"},
		{"sum", "SUM({DBInstanceClassMemory/12038},-50003)", "39193"},
		{"nested", "LEAST(GREATEST({DBInstanceVCPU*2},3), 10)", "4"},
		{"port", "{EndPointPort}", "5432"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := v.Evaluate(c.in)
			if err != nil || got != c.want {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"{", "{DBInstanceClassMemory/0}", "{foo}", "LEAST(", "{1}x", "{((((((((((((((((((1))))))))))))))))))}"} {
		if got, err := v.Evaluate(bad); err == nil {
			t.Errorf("%q gave %q, want an error", bad, got)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add("LEAST({DBInstanceClassMemory/9531392},5000)")
	f.Add("{log(DBInstanceVCPU)*(1-2)}")
	f.Fuzz(func(t *testing.T, s string) {
		FormulaVars{MemoryBytes: GiB, CPUs: 2}.Evaluate(s) // must neither panic nor hang
	})
}
