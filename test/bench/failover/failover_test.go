package failover

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe/test/bench/bed"
)

// testRun has a raw file and measures nothing.
func testRun(t *testing.T, s bed.Settings) *comparison {
	t.Helper()
	raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return &comparison{Run: &bed.Run{Settings: s, Out: &bed.Report{Raw: raw}}, book: NewBook()}
}

// each has every loss happen to a side once with each of the seconds.
func each(t *tally, losses []*loss, seconds ...float64) *tally {
	for round, s := range seconds {
		for _, x := range losses {
			t.count(strike{Side: t.Name, Loss: x.name, Round: round, Seconds: s, Acked: 10})
		}
	}
	return t
}

func (r *comparison) found(t *testing.T, what string) bed.Row {
	t.Helper()
	n := slices.IndexFunc(r.Out.Rows, func(line bed.Row) bool { return line.What == what })
	if n < 0 {
		t.Fatalf("no row %q in %+v", what, r.Out.Rows)
	}
	return r.Out.Rows[n]
}

// A bar holds each time, whatever the median says, and no row may be missing.
func TestFailoverRows(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []float64
		more    strike // of the first loss
		first   string // verdict of it, of the other losses, and of the rows
		others  string
		rows    string
	}{
		"all well":             {seconds: []float64{0.2, 0.1, 0.3}, first: bed.Meets, others: bed.Meets, rows: bed.Meets},
		"slow once":            {seconds: []float64{0.2, 0.1, 11}, first: bed.Misses, others: bed.Misses, rows: bed.Meets},
		"a row is missing":     {seconds: []float64{0.2}, more: strike{Seconds: 0.1, Missing: 1}, first: bed.Meets, others: bed.Meets, rows: bed.Misses},
		"a row is there twice": {seconds: []float64{0.2}, more: strike{Seconds: 0.1, Wrong: "twice"}, first: bed.Meets, others: bed.Meets, rows: bed.Misses},
		"it did not come back": {seconds: []float64{0.2}, more: strike{Failed: "gone"}, first: bed.Misses, others: bed.Meets, rows: bed.Meets},
		"nor could it be read": {seconds: []float64{0.2}, more: strike{Failed: "gone", Unread: true}, first: bed.Misses, others: bed.Meets, rows: bed.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRun(t, bed.Settings{})
			own := each(r.book.side(about{Name: "Kurabe", Role: roleOwn}), losses, c.seconds...)
			if c.more != (strike{}) {
				c.more.Loss = losses[0].name
				own.count(c.more)
			}
			r.failoverFigures()
			if len(r.Out.Rows) != len(losses)+1 {
				t.Fatalf("%d rows", len(r.Out.Rows))
			}
			for n, x := range losses {
				want := c.others
				if n == 0 {
					want = c.first
				}
				if line := r.Out.Rows[n]; line.Verdict != want || !strings.HasPrefix(line.What, x.name) {
					t.Errorf("%s is said to be %q, want %q", line.What, line.Verdict, want)
				}
			}
			if last := r.found(t, missingRows+", Kurabe"); last.Verdict != c.rows {
				t.Errorf("%+v, want %s", last, c.rows)
			}
		})
	}
	if got, want := medianAndWorst([]float64{0.3, 0.1, 2}), "median 0.30 s, worst 2.00 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A peer has no verdict; what it lost is told by the loss, and what it did not come back from
// is in the figure.
func TestPeerRows(t *testing.T) {
	r := testRun(t, bed.Settings{})
	each(r.book.side(about{Name: "Kurabe", Role: roleOwn}), losses, 0.5)
	peer := each(r.book.side(about{Name: "P", Role: rolePeer, Note: "settings"}), losses, 2)
	peer.count(strike{Loss: writerFrozen.name, Missing: 40, Acked: 60, Failed: "they stay apart"})
	r.book.side(about{Name: "Q", Role: rolePeer, Why: "not here"})
	r.failoverFigures()
	for _, line := range r.Out.Rows {
		if line.Verdict != "" && strings.HasSuffix(line.What, ", P") {
			t.Errorf("a peer has a verdict: %s", line.What)
		}
	}
	const figure = "median 2.00 s, worst 2.00 s"
	if line := r.found(t, writerKilled.name+", P"); line.Value != figure+"; × 4.0 and × 4.0 of Kurabe's" {
		t.Errorf("%+v", line)
	}
	frozen := r.found(t, writerFrozen.name+", P")
	if frozen.Value != figure+"; did not come back after 1 of 2; × 4.0 and × 4.0 of Kurabe's" || !strings.Contains(frozen.Note, "they stay apart") {
		t.Errorf("%+v", frozen)
	}
	if line := r.found(t, missingRows+", P"); line.Value != fmt.Sprintf("40 of %d", 10*len(losses)+60) || line.Note != "40 after "+writerFrozen.name {
		t.Errorf("%+v", line)
	}
	if line := r.found(t, "losses under Q"); line.Value != bed.NotMeasured || line.Note != "not here" {
		t.Errorf("%+v", line)
	}
	if line := r.found(t, classLarger.name+", Patroni"); line.Value != "–" || line.Note != noClasses {
		t.Errorf("%+v", line)
	}
}

// "Faster" is said of each median and each worst, and not of a loss that nobody compared.
func TestFasterRow(t *testing.T) {
	compared := 2 * (len(losses) - 2) // a peer has no classes
	for name, c := range map[string]struct {
		peer, want string
		seconds    []float64
		failed     bool
	}{
		"each time":                  {seconds: []float64{2, 3}, peer: bed.Meets, want: fmt.Sprintf("%d of %d", compared, compared)},
		"by the median only":         {seconds: []float64{0.4, 2, 0.9, 0.7}, peer: bed.Misses, want: fmt.Sprintf("%d of %d", compared/2, compared)},
		"one that did not come back": {seconds: []float64{0.6}, failed: true, peer: bed.Misses, want: fmt.Sprintf("%d of %d", compared/2+1, compared)},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRun(t, bed.Settings{})
			each(r.book.side(about{Name: "Kurabe", Role: roleOwn}), losses, 0.5, 0.5, 2.5)
			peer := r.book.side(about{Name: "P", Role: rolePeer})
			for _, x := range losses {
				if x.noPeer == "" {
					each(peer, []*loss{x}, c.seconds...)
				}
			}
			if c.failed {
				peer.count(strike{Loss: writerFrozen.name, Failed: "gone"})
			}
			r.failoverFigures()
			last := r.Out.Rows[len(r.Out.Rows)-1]
			if last.Value != c.want || last.Verdict != c.peer {
				t.Errorf("%+v, want %s, %s", last, c.want, c.peer)
			}
		})
	}
}

func TestFailoverIsOffered(t *testing.T) {
	if !slices.ContainsFunc(Parts(nil), func(p bed.Part) bool { return slices.Contains(p.Names, "failover") }) {
		t.Error("--only failover chooses nothing")
	}
}

// A loss over two hosts has its own bar, and beside it what a peer has seen of its like.
func TestHostRows(t *testing.T) {
	r := testRun(t, bed.Settings{})
	far := r.book.side(about{Name: "Kurabe" + overTwoHosts, Role: roleFar, Where: "far away"})
	peer := r.book.side(about{Name: "P", Role: rolePeer})
	bars := []string{"≤ 10 s", "≤ 10 s", "≤ 2 s", "≤ 1 s", "≤ 1 s", "≤ 1 s", "≤ 1 s", "≤ 2 s", "≤ 2 s", "≤ 2 s", "≤ 2 s"}
	for n, x := range hostLosses {
		far.count(strike{Loss: x.name, Seconds: 1.5})
		if x.noPeer == "" {
			peer.count(strike{Loss: x.peer.name, Seconds: float64(3 * (n + 1))})
		}
	}
	r.failoverFigures()
	for n, x := range hostLosses {
		own := r.found(t, x.name+": "+x.measure)
		if want := bed.Verdict(x.bar >= 1.5); own.Bar != bars[n]+", each time" || own.Verdict != want || !strings.HasSuffix(own.Note, "far away") {
			t.Errorf("%s: %+v, want %s %s", x.name, own, bars[n], want)
		}
		if x.noPeer != "" {
			continue
		}
		beside := r.found(t, x.name+", P on one machine")
		want := fmt.Sprintf("× %.1f and × %.1f of Kurabe's", float64(2*(n+1)), float64(2*(n+1)))
		if beside.Verdict != "" || !strings.HasSuffix(beside.Value, want) {
			t.Errorf("%s: %+v, want %s", x.name, beside, want)
		}
	}
	if last := r.found(t, missingRows+", Kurabe"+overTwoHosts); last.Verdict != bed.Meets {
		t.Errorf("%+v", last)
	}
}

// Machines are made for a run that names them; without them a row says why, and no peer is
// struck for a comparison that there is not.
func TestHostsThatCannotBeHad(t *testing.T) {
	for only, reason := range map[string]string{"": "only with --only failover", "hosts": "which root alone can make", "create,failover": "which root alone can make"} {
		r := testRun(t, bed.Settings{Only: only})
		r.sayNoHosts()
		if len(r.Out.Rows) != 1 || r.Out.Rows[0].Value != bed.NotMeasured || !strings.Contains(r.Out.Rows[0].Note, reason) {
			t.Errorf("--only %q: rows %+v", only, r.Out.Rows)
		}
		if slices.Contains(r.peerLosses(), hostLost) {
			t.Errorf("--only %q: a peer loses a host for nothing", only)
		}
	}
}

// A class is never changed to itself, which would be a change in no time.
func TestSmallerClass(t *testing.T) {
	for name, want := range map[string]string{"db.t3.medium": "db.t3.small", "db.local.medium": "db.local.small", "db.t3.xlarge": "db.t3.large", "db.t2.medium": "db.t2.small", "db.m5.xlarge": "db.m5.large", "db.t3.micro": ""} {
		if got := smallerClass(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
