package result

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kurabe/lab/stat"
)

// WriteBenchfmt writes the Go benchmark format, which benchstat reads: a line for each
// trial that counts, with all metrics that it has as units of their own. The baseline's
// come first, since benchstat compares with what it sees first; those of a variant are in
// the order in which they ran.
//
//	benchstat -col /variant FILE
//
// Benchstat does not know of blocks, so what it says is less precise than Estimates.
func WriteBenchfmt(w io.Writer, f *File) error {
	out := bufio.NewWriter(w)
	writeConfiguration(out, f)
	sheets := sheetsOf(f)
	columns := columns(f, sheets)
	for _, c := range columns {
		better := "lower"
		if c.Better == stat.HigherIsBetter {
			better = "higher"
		}
		fmt.Fprintf(out, "Unit %s better=%s\n", benchUnit(c), better)
	}
	for _, i := range baselineFirst(f) {
		t, sheet := &f.Trials[i], sheets[i]
		fmt.Fprintf(out, "%s %d", benchName(f, t), max(t.Main().Load.Transactions, 1))
		for _, c := range columns {
			if value, ok := sheet.Value(c.Name); ok {
				fmt.Fprintf(out, " %s %s", number(value), benchUnit(c))
			}
		}
		fmt.Fprintln(out)
		if err := sheet.Err(); err != nil {
			return fmt.Errorf("write benchmark format: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write benchmark format: %w", err)
	}
	return nil
}

func sheetsOf(f *File) []*Sheet {
	sheets := make([]*Sheet, len(f.Trials))
	for i := range f.Trials {
		sheets[i] = NewSheet(&f.Trials[i])
	}
	return sheets
}

// baselineFirst are the trials that count by variant, the baseline's before all others.
func baselineFirst(f *File) []int {
	var all []int
	for _, variant := range append([]string{f.Study.Definition.Baseline}, comparedVariants(f)...) {
		for i := range f.Trials {
			if t := &f.Trials[i]; t.Variant == variant && t.Counts() {
				all = append(all, i)
			}
		}
	}
	return all
}

// writeConfiguration names the machine of the last start of the run; the format has one
// for all that follows. Benchstat puts files in separate tables that differ in it, so
// there is nothing of the single run in it.
func writeConfiguration(out *bufio.Writer, f *File) {
	env := lastEnv(f)
	system, _, _ := strings.Cut(env.Host["kernel"], " ")
	for _, kv := range [][2]string{
		{"goos", strings.ToLower(system)}, {"goarch", goarch(env.Host["architecture"])}, {"pkg", "kurabe/lab/" + f.Study.Definition.Name}, {"cpu", env.Host["cpu"]},
	} {
		if value := oneLine(kv[1]); value != "" {
			fmt.Fprintf(out, "%s: %s\n", kv[0], value)
		}
	}
}

func lastEnv(f *File) Env {
	if len(f.Env) == 0 {
		return Env{}
	}
	return f.Env[len(f.Env)-1]
}

// goarch is Go's name of what uname calls the machine.
func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// oneLine keeps a text from ending the line that it is put in.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// benchName is BenchmarkWORKLOAD/variant=NAME-CLIENTS.
func benchName(f *File, t *Trial) string {
	clients := 1
	for _, w := range f.Study.Definition.Workloads {
		if w.Name == t.Workload {
			clients = max(w.Clients, 1)
		}
	}
	return fmt.Sprintf("Benchmark%s/variant=%s-%d", benchWorkload(t.Workload), benchEscape(t.Variant), clients)
}

// benchWorkload begins with a capital letter, as the format demands. The rest of the
// name is as it was, with "_" before what is no letter that has a capital.
func benchWorkload(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if upper := unicode.ToUpper(first); unicode.IsUpper(upper) {
		return string(upper) + benchEscape(name[size:])
	}
	return "X_" + benchEscape(name)
}

// benchEscape writes as %XX the bytes of what ends a field or a part of a name, and of %.
func benchEscape(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r != utf8.RuneError && !unicode.IsSpace(r) && unicode.IsPrint(r) && !strings.ContainsRune("/=%*", r) {
			b.WriteRune(r)
			continue
		}
		_, size := utf8.DecodeRuneInString(name[i:])
		for _, c := range []byte(name[i : i+size]) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// benchUnit is the metric's name and unit. Of a ratio of phases the / would make it a
// unit per another.
func benchUnit(m Metric) string {
	name := strings.ReplaceAll(benchEscape(strings.ReplaceAll(m.Name, "/", ":")), "%20", "_")
	switch m.Unit {
	case "", "1/s":
		return name
	}
	return name + "-" + m.Unit
}

// number is the shortest text that reads as the same number.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// columns are the metrics that any trial that counts has, in their order: those without
// a phase, or of each phase in a study with changes, then the statements, then what the
// study names beside.
func columns(f *File, sheets []*Sheet) []Metric {
	suffixes := []string{""}
	if slices.ContainsFunc(f.Trials, func(t Trial) bool { return t.Phase(PhaseDuring) != nil }) {
		suffixes = []string{"@" + PhaseIdle, "@" + PhaseDuring, "@" + PhaseAfter}
	}
	names := []string{changeSeconds}
	for _, suffix := range suffixes {
		for _, m := range Metrics {
			if m.Name != changeSeconds {
				names = append(names, m.Name+suffix)
			}
		}
		for _, s := range Statements(f) {
			names = append(names, StatementMetric(s)+suffix)
		}
	}
	for _, name := range studyMetrics(&f.Study.Definition) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return present(sheets, names)
}

func present(sheets []*Sheet, names []string) []Metric {
	var all []Metric
	for _, name := range names {
		has := slices.ContainsFunc(sheets, func(s *Sheet) bool {
			_, ok := s.Value(name)
			return ok && s.trial.Counts()
		})
		if m, err := FindMetric(name); err == nil && has {
			all = append(all, m)
		}
	}
	return all
}
