package failover

import (
	"fmt"
	"slices"
	"strings"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// failoverFigures makes the rows of all losses from what the file has.
func (r *comparison) failoverFigures() {
	b := r.book
	peers := slices.DeleteFunc(b.role(rolePeer), func(t *tally) bool { return len(t.strikes) == 0 && t.Why != "" })
	own, far := b.only(roleOwn), b.only(roleFar)
	if own != nil {
		r.lossRows(losses, own, b.only(roleOther), peers)
	}
	if far != nil {
		r.lossRows(hostLosses, far, b.only(roleFarOther), peers)
	}
	for _, t := range b.role(rolePeer) {
		if !slices.Contains(peers, t) {
			r.Out.Row(bed.Row{Bench: "failover", What: "losses under " + t.Name, Value: bed.NotMeasured, Note: t.Why})
			continue
		}
		acked, missing, unread, wrong := t.sum()
		r.Out.Row(bed.Row{Bench: "failover", What: missingRows + ", " + t.Name, Value: fmt.Sprintf("%d of %d", missing, acked), Note: joined(t.lost(), wrong, unreadNote(unread))})
	}
	if len(peers) > 0 {
		r.Out.Row(fasterRow(peers, own, far))
	}
}

// lossRows puts each peer's figure below Kurabe's of the same loss.
func (r *comparison) lossRows(losses []*loss, own, other *tally, peers []*tally) {
	for _, x := range losses {
		r.Out.Row(own.judged(x, x.name+": "+x.measure))
		if other != nil {
			r.Out.Row(other.judged(x, x.name+", MariaDB"))
		}
		if x.noPeer != "" && len(peers) > 0 {
			r.Out.Row(bed.Row{Bench: "failover", What: x.name + ", Patroni", Value: "–", Note: x.noPeer})
			continue
		}
		for _, t := range peers {
			r.Out.Row(t.beside(x, own.seen(x)))
		}
	}
	for _, t := range []*tally{own, other} {
		if t != nil {
			r.Out.Row(t.kept())
		}
	}
}

const missingRows = "acknowledged rows that are missing after all of it"

// kept is whether a client of ours finds what it was told is safe.
func (t *tally) kept() bed.Row {
	acked, missing, unread, wrong := t.sum()
	line := bed.Row{Bench: "failover", What: missingRows + ", " + t.Name, Value: fmt.Sprintf("%d of %d", missing, acked), Bar: "0",
		Verdict: bed.Verdict(missing == 0 && wrong == ""), Note: joined(t.lost(), wrong, unreadNote(unread))}
	if unread > 0 && line.Verdict == bed.Meets {
		line.Verdict = bed.Undecided
	}
	return line
}

func unreadNote(count int) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("after %d losses the rows could not be read", count)
}

func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// judged is what a client of ours has seen of one loss, held against its bar.
func (t *tally) judged(x *loss, what string) bed.Row {
	line := bed.Row{Bench: "failover", What: what, Value: t.figure(x)}
	line.Note = joined(fmt.Sprintf("%d rounds, a client that writes every 10 ms; %s", t.rounds(x), t.Where), t.trouble(x))
	if t.rounds(x) > 0 && x.bar > 0 {
		seen := t.seen(x)
		whole := len(t.broken(x)) == 0 && t.Why == ""
		line.Bar, line.Verdict = fmt.Sprintf("≤ %.0f s, each time", x.bar), bed.Verdict(whole && slices.Max(seen) <= x.bar)
	}
	return line
}

// figure is what was seen of one loss, with what it did not come back from.
func (t *tally) figure(x *loss) string {
	seen, broken := t.seen(x), len(t.broken(x))
	switch {
	case t.rounds(x) == 0:
		return bed.NotMeasured
	case len(seen) == 0:
		return fmt.Sprintf("came back after none of %d", broken)
	case broken > 0:
		return fmt.Sprintf("%s; did not come back after %d of %d", medianAndWorst(seen), broken, t.rounds(x))
	}
	return medianAndWorst(seen)
}

// trouble is why it did not come back, of the first time, and why it goes on no more.
func (t *tally) trouble(x *loss) string {
	var notes []string
	if broken := t.broken(x); len(broken) > 0 {
		notes = append(notes, "did not come back, and another pair was made: "+shortened(broken[0]))
	}
	if t.Why != "" {
		notes = append(notes, "given up: "+shortened(t.Why))
	}
	return strings.Join(notes, "; ")
}

// reasonMost is as much of an error as fits into a table; all of it is in the file.
const reasonMost = 200

func shortened(reason string) string {
	if len(reason) <= reasonMost {
		return reason
	}
	return strings.ToValidUTF8(reason[:reasonMost], "") + "…"
}

// beside is what a peer's client has seen of one loss, and how many times as much that is.
func (t *tally) beside(x *loss, own []float64) bed.Row {
	line := bed.Row{Bench: "failover", What: x.name + ", " + t.Name}
	if x.peer != nil {
		line.What, x = x.name+", "+t.Name+" on one machine", x.peer
	}
	line.Value = t.figure(x)
	how := ""
	switch x {
	case writerFrozen:
		how = "the Patroni of the server is frozen with it"
	case hostLost, standbyHostLost:
		how = "server and Patroni are killed, and there is no cable: the kernel tells the others at once"
	}
	abreast := ""
	if n := t.together(x); n > 0 {
		abreast = fmt.Sprintf("abreast of its other forms in %d", n)
	}
	line.Note = joined(fmt.Sprintf("rounds: %d", t.rounds(x)), abreast, t.Note, how, t.trouble(x))
	if seen := t.seen(x); len(seen) > 0 && len(own) > 0 {
		line.Value += fmt.Sprintf("; × %.1f and × %.1f of Kurabe's", stat.Median(seen)/stat.Median(own), slices.Max(seen)/slices.Max(own))
	}
	return line
}

// fasterRow counts in how many comparisons Kurabe is the faster one, by the median and by the
// worst: of each loss, with each form of the peers. One that did not come back was slower.
func fasterRow(peers []*tally, ours ...*tally) bed.Row {
	better, all := 0, 0
	var not []string
	for n, own := range ours {
		for _, x := range [][]*loss{losses, hostLosses}[n] {
			like := x
			if x.peer != nil {
				like = x.peer
			}
			for _, t := range peers {
				if own == nil || x.noPeer != "" || len(own.seen(x)) == 0 || t.rounds(like) == 0 {
					continue
				}
				all += 2
				medianFaster, worstFaster := own.faster(x, t, like)
				for kind, faster := range map[string]bool{"median": medianFaster, "worst": worstFaster} {
					if faster {
						better++
					} else {
						not = append(not, fmt.Sprintf("%s of %s, %s", kind, x.name, t.Name))
					}
				}
			}
		}
	}
	slices.Sort(not)
	line := bed.Row{Bench: "failover", What: "Kurabe is faster than Patroni: comparisons of a median or a worst", Value: fmt.Sprintf("%d of %d", better, all), Bar: "all", Note: joined(append([]string{"each loss beside each form of Patroni"}, not...)...)}
	if all > 0 {
		line.Verdict = bed.Verdict(better == all)
	}
	return line
}

func (t *tally) faster(x *loss, peer *tally, like *loss) (median, worst bool) {
	own, theirs := t.seen(x), peer.seen(like)
	ours, lost := len(t.broken(x)) == 0, len(peer.broken(like)) > 0
	median = len(theirs) == 0 || stat.Median(own) < stat.Median(theirs)
	return median, ours && (lost || slices.Max(own) < slices.Max(theirs))
}

// lost says after which losses rows were missing that had not been before.
func (t *tally) lost() string {
	var order []string
	missing := map[string]int{}
	for _, s := range t.strikes {
		if s.Missing != 0 && !slices.Contains(order, s.Loss) {
			order = append(order, s.Loss)
		}
		missing[s.Loss] += s.Missing
	}
	var after []string
	for _, name := range order {
		after = append(after, fmt.Sprintf("%d after %s", missing[name], name))
	}
	return strings.Join(after, "; ")
}

func medianAndWorst(seconds []float64) string {
	return fmt.Sprintf("median %.2f s, worst %.2f s", stat.Median(seconds), slices.Max(seconds))
}
