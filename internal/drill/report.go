package drill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/pulse"
)

// Report is what a drill tells.
type Report struct {
	Instance string `json:"instance"`
	Engine   string `json:"engine"`
	Order    string `json:"order"`
	Action   Action `json:"action"`
	Side     Side   `json:"side,omitempty"`
	// Struck are the servers that it was done to, none of a failover in order.
	Struck []kurabe.InstanceID `json:"struck,omitempty"`
	For    float64             `json:"forSeconds,omitempty"`
	Fault  time.Time           `json:"fault,omitzero"` // zero when nothing was done
	Before Place               `json:"before"`
	After  Place               `json:"after"`
	// Interrupted: somebody ended the drill before its time.
	Interrupted bool `json:"interrupted"`
	// WholeAfter is how long after the fault the instance lacked nothing any more, 0 when
	// it did not come to that.
	WholeAfter float64 `json:"wholeAfterSeconds,omitempty"`

	// Gap is the longest time without an acknowledgement, which began GapFrom after the
	// fault; LongestCommit the longest wait of a row that was acknowledged.
	Gap           float64 `json:"gapSeconds"`
	GapFrom       float64 `json:"gapFromSeconds"`
	LongestCommit float64 `json:"longestCommitSeconds"`
	Errors        int     `json:"errors"`

	Rows Rows `json:"rows"`
	// Reads are those of a client of the reader endpoint, nil of what has none.
	Reads    *Reads  `json:"reads,omitempty"`
	Timeline []Entry `json:"timeline"`
}

// Place is who writes, and who has every commit.
type Place struct {
	Epoch   kurabe.Epoch `json:"epoch"`
	Writer  Seat         `json:"writer,omitzero"`
	Standby Seat         `json:"standby,omitzero"` // zero while none has every commit
	// Readers are those of a DB cluster that may take over: one of them has every commit.
	Readers []Seat `json:"readers,omitempty"`
}

// Seat is where a server is.
type Seat struct {
	Server  kurabe.InstanceID `json:"server"`
	Zone    string            `json:"zone"`
	Process int               `json:"process"`
}

// Rows holds the table against what its client knows.
type Rows struct {
	Acknowledged int      `json:"acknowledged"`
	Missing      []int64  `json:"missing"` // acknowledged, and not there
	Twice        []int64  `json:"twice"`
	Strange      []string `json:"strange"` // never written
	// Unanswered rows are there without having been acknowledged: that is allowed.
	Unanswered int `json:"unanswered"`
	// Unread is why the table could not be read, "" when it was.
	Unread string `json:"unread,omitempty"`
}

// Wrong says what no drill should show, "" when nothing is wrong.
func (r Rows) Wrong() string {
	if r.Unread != "" {
		return "cannot read the rows: " + r.Unread
	}
	return pulse.Verdict{Acked: r.Acknowledged, Missing: r.Missing, Twice: r.Twice, Strange: r.Strange}.Wrong()
}

// report collects what was seen.
func (r *run) report(ctx context.Context, interrupted bool) *Report {
	r.Say("reading the rows")
	after, _ := r.watch.newest()
	o := &Report{Instance: r.Instance, Engine: r.Engine, Order: r.Order.String(), Action: r.Order.Action, Side: r.Order.Side, Struck: r.struck,
		Fault: r.fault, Before: place(r.before), After: place(after), Interrupted: interrupted}
	if r.Order.lasts() {
		o.For = r.Order.For.Seconds()
	}
	zero := r.fault
	if zero.IsZero() {
		zero = r.began
	}
	if !r.whole.IsZero() {
		o.WholeAfter = r.whole.Sub(zero).Seconds()
	}
	longest := r.pulse.Longest(zero)
	o.Gap, o.GapFrom = longest.Lasted().Seconds(), longest.From.Sub(zero).Seconds()
	o.LongestCommit = r.pulse.LongestWait(zero).Seconds()
	o.Errors, _ = r.pulse.Errors(zero)
	o.Rows = r.rows(ctx)
	if r.reads != nil {
		o.Reads = r.reads.report(zero)
	}
	o.Timeline = r.merge(ctx, zero)
	return o
}

func place(l Look) Place {
	p := Place{Epoch: l.Epoch}
	if w, ok := l.Server(l.Writer); ok {
		p.Writer = seat(w)
	}
	if l.Cluster {
		for _, s := range l.synced() {
			p.Readers = append(p.Readers, seat(s))
		}
	} else if s, ok := l.Standby(); ok {
		p.Standby = seat(s)
	}
	return p
}

func seat(s Server) Seat { return Seat{s.ID, s.Zone, s.PID} }

func (r *run) rows(ctx context.Context) Rows {
	var v pulse.Verdict
	err := retry(ctx, func() (err error) {
		v, err = r.pulse.Judge(ctx)
		return err
	})
	rows := Rows{Acknowledged: r.pulse.Acked(), Missing: list(v.Missing), Twice: list(v.Twice), Strange: list(v.Strange), Unanswered: v.Unanswered}
	if err != nil {
		rows.Unread = err.Error()
	}
	return rows
}

// list is never null for machines that count its elements.
func list[T any](of []T) []T { return append([]T{}, of...) }

// silenceLeast is what is told of in the timeline: less is the pace of the client.
// silencesMost bounds it on a machine that stalls all the time.
const (
	silenceLeast = 10 * pulse.Every
	silencesMost = 20
)

// merge is the timeline, in order.
func (r *run) merge(ctx context.Context, zero time.Time) []Entry {
	list := append(r.watch.timeline(), r.client(zero)...)
	events, err := r.Service.Events(ctx, r.began)
	if err != nil {
		list = append(list, Entry{At: time.Now(), Source: FromDrill, Text: "cannot read the events: " + err.Error()})
	}
	for _, e := range events {
		list = append(list, Entry{At: e.At, Source: FromEvent, Text: e.Text})
	}
	if !r.whole.IsZero() {
		list = append(list, Entry{At: r.whole, Source: FromDrill, Text: "full redundancy is restored"})
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return a.At.Compare(b.At) })
	for n := range list {
		list[n].Seconds = list[n].At.Sub(zero).Seconds()
	}
	return list
}

// client is what the client saw: when it was answered again after each silence, and the
// first error of each kind.
func (r *run) client(zero time.Time) (list []Entry) {
	for _, s := range r.pulse.Silences(zero) {
		if s.Lasted() >= silenceLeast && len(list) < silencesMost && !r.fault.IsZero() {
			list = append(list, Entry{At: s.To, Source: FromClient, Text: fmt.Sprintf("an acknowledgement, the first in %.2f s", s.Lasted().Seconds())})
		}
	}
	known := map[string]bool{}
	for _, f := range r.pulse.Failures(r.began) {
		if text := f.Err.Error(); !known[text] {
			known[text] = true
			list = append(list, Entry{At: f.At, Source: FromClient, Text: text})
		}
	}
	return list
}
