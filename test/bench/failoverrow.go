package main

import (
	"fmt"
	"slices"
	"strings"

	"kurabe/lab/stat"
)

// failoverRows puts each peer's figure below Kurabe's of the same loss.
func (r *run) failoverRows(own, other *tally, peers []*tally) {
	for _, x := range losses {
		r.out.row(own.judged(x, x.name+": "+x.measure))
		if other != nil {
			r.out.row(other.judged(x, x.name+", "+other.name))
		}
		for _, t := range peers {
			r.out.row(t.beside(x, own.seen[x]))
		}
	}
	const rows = "acknowledged rows that are missing after all of it"
	v := own.verdict
	r.out.row(row{Bench: "failover", What: rows, Value: fmt.Sprintf("%d of %d", len(v.Missing), v.Acked),
		Bar: "0", Verdict: verdict(v.Wrong() == ""), Note: v.Wrong()})
	if other != nil {
		v := other.verdict
		r.out.row(row{Bench: "failover", What: rows + ", " + other.name, Value: fmt.Sprintf("%d of %d", len(v.Missing), v.Acked),
			Bar: "0", Verdict: verdict(v.Wrong() == ""), Note: v.Wrong()})
	}
	for _, t := range peers {
		r.out.row(row{Bench: "failover", What: rows + ", " + t.name, Value: fmt.Sprintf("%d of %d", len(t.verdict.Missing), t.verdict.Acked), Note: t.lost()})
	}
}

// judged is what a client of ours has seen of one loss, held against its bar.
func (t *tally) judged(x *loss, what string) row {
	seen := t.seen[x]
	line := row{Bench: "failover", What: what, Note: fmt.Sprintf("%d rounds, a client that writes every 10 ms; both servers on this machine", len(seen))}
	if t.err != nil {
		line.Note += "; given up: " + oneLine(t.err)
	}
	if len(seen) == 0 {
		line.Value = "not measured"
		return line
	}
	line.Value = medianAndWorst(seen)
	if x.bar > 0 {
		line.Bar, line.Verdict = fmt.Sprintf("≤ %.0f s, each time", x.bar), verdict(t.err == nil && slices.Max(seen) <= x.bar)
	}
	return line
}

// beside is what a peer's client has seen of one loss, and how many times as much that is.
func (t *tally) beside(x *loss, own []float64) row {
	line := row{Bench: "failover", What: x.name + ", " + t.name, Note: fmt.Sprintf("rounds: %d; %s", len(t.seen[x]), t.note)}
	if t.err != nil {
		line.Note += "; given up: " + oneLine(t.err)
	}
	if len(t.seen[x]) == 0 {
		line.Value = "not measured"
		return line
	}
	line.Value = fmt.Sprintf("%s; × %.1f and × %.1f of Kurabe's", medianAndWorst(t.seen[x]),
		stat.Median(t.seen[x])/stat.Median(own), slices.Max(t.seen[x])/slices.Max(own))
	return line
}

// lost says after which losses rows were missing that had not been before.
func (t *tally) lost() string {
	var after []string
	for _, x := range losses {
		if t.missing[x] != 0 {
			after = append(after, fmt.Sprintf("%d after %s", t.missing[x], x.name))
		}
	}
	if v := t.verdict; len(v.Twice)+len(v.Strange) > 0 {
		after = append(after, v.Wrong())
	}
	return strings.Join(after, "; ")
}

func medianAndWorst(seconds []float64) string {
	return fmt.Sprintf("median %.2f s, worst %.2f s", stat.Median(seconds), slices.Max(seconds))
}
