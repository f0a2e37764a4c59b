package main

import (
	"fmt"
	"slices"
	"strings"

	"kurabe/lab/stat"
)

// failoverRows puts each peer's figure below Kurabe's of the same loss.
func (r *run) failoverRows(own, other *tally, peers []*tally) {
	r.lossRows(own, other, peers)
	r.peersMissing(peers)
}

// lossRows leaves out what a peer has lost.
func (r *run) lossRows(own, other *tally, peers []*tally) {
	for _, x := range own.losses {
		r.out.row(own.judged(x, x.name+": "+x.measure))
		if other != nil {
			r.out.row(other.judged(x, x.name+", "+other.name))
		}
		for _, t := range peers {
			r.out.row(t.beside(x, own.seen[x]))
		}
	}
	r.out.row(own.kept(missingRows + own.over()))
	if other != nil {
		r.out.row(other.kept(missingRows + other.over() + ", " + other.name))
	}
}

const missingRows = "acknowledged rows that are missing after all of it"

// over says of which pairs a row is that does not name a loss.
func (t *tally) over() string {
	if slices.Equal(t.losses, hostLosses) {
		return " over two hosts"
	}
	return ""
}

// kept is whether a client of ours finds what it was told is safe.
func (t *tally) kept(what string) row {
	v := t.verdict
	return row{Bench: "failover", What: what, Value: fmt.Sprintf("%d of %d", len(v.Missing), v.Acked),
		Bar: "0", Verdict: verdict(v.Wrong() == ""), Note: v.Wrong()}
}

// peersMissing is what a peer's client misses, after all that was done to it.
func (r *run) peersMissing(peers []*tally) {
	for _, t := range peers {
		r.out.row(row{Bench: "failover", What: missingRows + ", " + t.name, Value: fmt.Sprintf("%d of %d", len(t.verdict.Missing), t.verdict.Acked), Note: t.lost()})
	}
}

// judged is what a client of ours has seen of one loss, held against its bar.
func (t *tally) judged(x *loss, what string) row {
	seen := t.seen[x]
	line := row{Bench: "failover", What: what, Note: fmt.Sprintf("%d rounds, a client that writes every 10 ms; %s", len(seen), t.where)}
	if t.err != nil {
		line.Note += "; given up: " + oneLine(t.err)
	}
	if len(seen) == 0 {
		line.Value = notMeasured
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
	line := row{Bench: "failover", What: x.name + ", " + t.name}
	if x.peer != nil {
		line.What, x = x.name+", "+t.name+" on one machine", x.peer
	}
	line.Note = fmt.Sprintf("rounds: %d; %s", len(t.seen[x]), t.note)
	if x == writerFrozen {
		line.Note += "; the Patroni of the server is frozen with it"
	}
	if t.err != nil {
		line.Note += "; given up: " + oneLine(t.err)
	}
	if len(t.seen[x]) == 0 {
		line.Value = notMeasured
		return line
	}
	if line.Value = medianAndWorst(t.seen[x]); len(own) == 0 {
		return line
	}
	line.Value = fmt.Sprintf("%s; × %.1f and × %.1f of Kurabe's", medianAndWorst(t.seen[x]),
		stat.Median(t.seen[x])/stat.Median(own), slices.Max(t.seen[x])/slices.Max(own))
	return line
}

// lost says after which losses rows were missing that had not been before.
func (t *tally) lost() string {
	var after []string
	for _, x := range t.losses {
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
