package report

import (
	"strings"

	"kurabe/lab/result"
)

// Bounds of the tables that tell how the measuring went.
const (
	maxIncidents   = 200
	maxDifferences = 200
	maxValueCells  = 120 // of a setting's value
)

// incidents are the trials that are not plainly ok, with the reasons; nil when all are.
func (v *view) incidents() *grid {
	g := &grid{Title: "What was excluded, repeated or unsettled", Columns: []string{"trial", "block", "workload", "variant", "status", "reason", "effect"}, Names: 7}
	left := 0
	for n := range v.file.Trials {
		t := &v.file.Trials[n]
		if t.Status == result.StatusOK {
			continue
		}
		if len(g.Rows) == maxIncidents {
			left++
			continue
		}
		g.Rows = append(g.Rows, gridRow{Cells: []string{
			count(int64(n + 1)), count(int64(t.Block)), v.workloadLabel(t.Workload), v.label(t.Variant),
			clean(t.Status), orElse(reasonWords(t.Reason), none), v.effect(n),
		}})
	}
	if left > 0 {
		g.More = plural(int64(left), "more is", "more are") + " in the file"
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// effect says what became of a trial that is not ok.
func (v *view) effect(n int) string {
	t := &v.file.Trials[n]
	if t.Counts() {
		return "counts; shown hollow"
	}
	for k := range v.file.Trials[n+1:] {
		later := &v.file.Trials[n+1+k]
		if later.Block == t.Block && later.Variant == t.Variant && later.Workload == t.Workload && later.Counts() {
			return "does not count; run again as trial " + count(int64(n+2+k))
		}
	}
	return "does not count; the block lacks this cell"
}

func (v *view) workloadLabel(name string) string {
	for _, w := range v.workloads {
		if w.Name == name {
			return workloadTitle(w)
		}
	}
	return label(name)
}

// differences are the settings in which a variant's server was not as the baseline's.
func (v *view) differences() *grid {
	g := &grid{
		Title: "Settings that differ from the baseline", Columns: []string{"variant", "setting", "baseline", "variant’s", "in the recipe"}, Names: 5,
		Caption: "As the servers told them. What is not in the recipe should not be here; names that differ by nature, such as ports, are left out.",
	}
	all := result.EnvironmentDiff(v.file)
	left := 0
	for _, x := range v.variants {
		for _, d := range all[x.Name] {
			if len(g.Rows) == maxDifferences {
				left++
				continue
			}
			meant := "no"
			if _, ok := x.Parameters[d.Name]; ok {
				meant = "yes"
			}
			g.Rows = append(g.Rows, gridRow{Cells: []string{
				x.label, clean(d.Name), orElse(cut(clean(d.Baseline), maxValueCells), "(empty)"), orElse(cut(clean(d.Value), maxValueCells), "(empty)"), meant,
			}})
		}
	}
	if left > 0 {
		g.More = plural(int64(left), "more is", "more are") + " in the file"
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// fact is a name with its value.
type fact struct{ Name, Value string }

// facts are machine, engine and lab as the first record has them. What a resumed run
// found otherwise is added to its value.
func (v *view) facts() []fact {
	var out []fact
	if len(v.file.Env) == 0 {
		return nil
	}
	for _, part := range []struct {
		title string
		of    func(result.Env) map[string]string
	}{
		{"engine", func(e result.Env) map[string]string { return e.Engine }},
		{"host", func(e result.Env) map[string]string { return e.Host }},
		{"lab", func(e result.Env) map[string]string { return e.Lab }},
	} {
		first := part.of(v.file.Env[0])
		for _, name := range sortedKeys(first) {
			value := reasonWords(first[name])
			for n, later := range v.file.Env[1:] {
				if other := reasonWords(part.of(later)[name]); other != value && n < maxPanels {
					value += "; after a resume: " + other
				}
			}
			out = append(out, fact{part.title + " " + strings.ReplaceAll(clean(name), "_", " "), value})
		}
	}
	return out
}

// host is a fact of the machine by name, "" without one.
func (v *view) host(name string) string {
	if len(v.file.Env) == 0 {
		return ""
	}
	return v.file.Env[0].Host[name]
}

// engine names the engine with its version.
func (v *view) engine() string {
	names := map[string]string{"postgres": "PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL"}
	name := orElse(names[v.file.Study.Engine], clean(v.file.Study.Engine))
	if len(v.file.Env) > 0 {
		name += " " + clean(v.file.Env[0].Engine["version"])
	}
	return strings.TrimSpace(name)
}

// command is how the study is run again, safe to paste into a shell.
func (v *view) command() string {
	var parts []string
	for _, word := range v.file.Study.Command {
		parts = append(parts, shellWord(clean(word)))
	}
	return strings.Join(parts, " ")
}

// shellWord quotes what a shell would not take as it is.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,+%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
