package report

import (
	"fmt"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// sentence is one answer: the lead names variant and verdict, the rest proves it.
type sentence struct {
	Class string // of the style sheet, by verdict
	Lead  string
	Rest  string
}

func (s sentence) String() string { return s.Lead + ": " + s.Rest }

// answers are the sentences of a workload, one for each variant but baseline and twin.
func (v *view) answers(workload string) []sentence {
	var out []sentence
	metric := v.primary(workload)
	for _, x := range v.variants {
		if v.isBaseline(x) || x.TwinOf != "" {
			continue
		}
		if e := v.estimate(metric.name, x.Name, workload); e != nil && len(v.trials[cellName{x.Name, workload}]) > 0 {
			out = append(out, v.answer(x.label, e))
		}
	}
	return out
}

func (v *view) answer(label string, e *result.Estimate) sentence {
	s := sentence{Class: verdictClass(e.Verdict), Lead: label + " " + verdictWords(e.Verdict)}
	if e.Ratio.Pairs == 0 {
		s.Class, s.Lead = verdictClass(stat.Undecided), label+": nothing to compare"
		s.Rest = orElse(clean(e.Why), "no block has both this variant and the baseline")
		return s
	}
	s.Rest = fmt.Sprintf("%s %s (%s)", subject(v.primary(e.Workload).title), change(e.Ratio.Estimate), intervalWords(e.Ratio))
	switch e.Verdict {
	case stat.NoMaterialCost:
		s.Rest += "; the interval lies within the margin of ±" + percent(v.margin(e.Workload))
	case stat.Undecided:
		if e.MoreBlocks > 0 {
			s.Rest += "; about " + plural(int64(e.MoreBlocks), "more block", "more blocks") + " would decide"
		}
	}
	if why := clean(e.Why); why != "" && why != v.withheldWhy(e.Workload) {
		s.Rest += "; " + why
	}
	s.Rest += "."
	return s
}

// intervalWords are a ratio in running text.
func intervalWords(r stat.Ratio) string {
	blocks := plural(int64(r.Pairs), "block", "blocks")
	if !hasInterval(r) {
		return fmt.Sprintf("ratio %s over %s, too few for an interval", ratio(r), blocks)
	}
	d := ratioDecimals(r.Estimate)
	return fmt.Sprintf("ratio %s, 95\u00a0%% interval %s to %s, %s", ratio(r), fixed(r.Interval.Low, d), fixed(r.Interval.High, d), blocks)
}

// subject is a metric's title with its verb. Titles whose first word is a plural are
// counts; one with a comma in it is closed by another.
func subject(title string) string {
	first, _, _ := strings.Cut(title, " ")
	if first == "syncs" || first == "context" || first == "waits" {
		return title + " are"
	}
	if strings.Contains(title, ",") {
		title += ","
	}
	return title + " is"
}

func verdictWords(verdict stat.Verdict) string {
	switch verdict {
	case stat.NoMaterialCost:
		return "has no material cost"
	case stat.Undecided:
		return "is undecided"
	case stat.DirectionOnly:
		return "has a direction, no verdict"
	case stat.Withheld:
		return "has no verdict"
	}
	return string(verdict)
}

// verdictClass is the class of the style sheet; it adds to the words and says nothing
// that they do not.
func verdictClass(verdict stat.Verdict) string {
	switch verdict {
	case stat.Costs:
		return "costs"
	case stat.NoMaterialCost:
		return "nocost"
	case stat.Improves:
		return "improves"
	case stat.Withheld:
		return "withheld"
	}
	return "open"
}

// warning is what must be read before any answer; "" when there is nothing.
func (v *view) warning() string {
	direction, withheld, judged := false, 0, 0
	for n := range v.estimates {
		e := &v.estimates[n]
		if !e.Primary || e.Twin || e.Ratio.Pairs == 0 {
			continue
		}
		judged++
		direction = direction || e.Verdict == stat.DirectionOnly
		if e.Verdict == stat.Withheld {
			withheld++
		}
	}
	switch {
	case len(v.file.Trials) == 0:
		return "No trial has been measured yet."
	case judged == 0:
		return "Nothing can be compared yet: no block has both the baseline and another variant."
	case withheld > 0:
		return v.withheldWords(withheld, judged)
	case direction:
		return fmt.Sprintf("A direction only: %s measured, and below %d there is no interval at 95\u00a0%%.", plural(int64(v.blocks), "block", "blocks"), stat.MinPairs)
	}
	return ""
}

// withheldWords give the reasons that hold for a whole workload; others stand beside the
// variants that they are of.
func (v *view) withheldWords(withheld, judged int) string {
	head := "Verdicts are withheld"
	if withheld < judged {
		head = fmt.Sprintf("%d of %d verdicts are withheld", withheld, judged)
	}
	var parts []string
	for _, w := range v.workloads {
		if why := v.withheldWhy(w.Name); why != "" && len(parts) < maxPanels {
			parts = append(parts, "under "+workloadTitle(w)+" "+strings.TrimSuffix(why, "."))
		}
	}
	if len(parts) == 0 {
		return head + "; the reasons stand beside them."
	}
	return head + ": " + strings.Join(parts, "; ") + "."
}

// withheldWhy is the reason when all verdicts under a workload are withheld for the same
// one, "" otherwise.
func (v *view) withheldWhy(workload string) string {
	why := ""
	for n := range v.estimates {
		e := &v.estimates[n]
		if !e.Primary || e.Twin || e.Workload != workload || e.Ratio.Pairs == 0 {
			continue
		}
		if e.Verdict != stat.Withheld || e.Why == "" || why != "" && why != clean(e.Why) {
			return ""
		}
		why = clean(e.Why)
	}
	return why
}

// noise says how far two equal things were apart.
func (v *view) noise(workload string) string {
	margin := "margin declared before the run ±" + percent(v.margin(workload))
	for _, x := range v.variants {
		if x.TwinOf == "" {
			continue
		}
		e := v.estimate(v.primary(workload).name, x.Name, workload)
		if e == nil || e.Ratio.Pairs == 0 {
			break
		}
		text := fmt.Sprintf("Noise floor: %s, the same recipe under another name, came out at %s", x.label, ratio(e.Ratio))
		if hasInterval(e.Ratio) {
			text += " " + interval(e.Ratio)
		}
		return text + " times " + v.label(v.def.Baseline) + "; " + margin + "."
	}
	return "Noise floor: not measured; " + margin + "."
}

// loadWords describe a load.
func loadWords(w study.Workload) string {
	parts := []string{clean(w.Generator)}
	switch {
	case w.Kit != "":
		parts[0] += " " + clean(w.Kit)
	case w.Script != "":
		parts[0] += ", own script"
	}
	switch w.Mode {
	case study.ModeOpen:
		text := "open load of " + num(w.Rate) + " transactions a second"
		if w.Arrival != "" {
			text += " (" + clean(w.Arrival) + " arrivals)"
		}
		parts = append(parts, text, plural(int64(w.Clients), "session", "sessions"))
	case study.ModeSeries:
		parts = append(parts, count(int64(w.Requests))+" requests in series")
	default:
		parts = append(parts, "closed load", plural(int64(w.Clients), "client", "clients"))
	}
	if w.Protocol != "" {
		parts = append(parts, clean(w.Protocol)+" protocol")
	}
	if w.Connect {
		parts = append(parts, "a new connection for each transaction")
	}
	switch {
	case w.Rows > 0:
		parts = append(parts, count(int64(w.Rows))+" rows")
	case w.Scale > 0:
		parts = append(parts, "scale "+count(int64(w.Scale)))
	}
	return strings.Join(parts, ", ")
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
