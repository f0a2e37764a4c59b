package plan

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

// Commits that ended their wait early are told of at once and then as sums, and that another
// server has them; nothing is counted twice, whoever writes.
func TestTellWaits(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	second := id.Member(2)
	waits := func(cancelled, ended int64, alone bool) *kurabe.ServerWaits {
		return &kurabe.ServerWaits{WaitCount: kurabe.WaitCount{Cancelled: cancelled, Ended: ended}, Unreplicated: alone}
	}
	const told, elsewhere, later = "KURABE-EVENT-0036", "KURABE-EVENT-0037", "later"
	g := &kurabe.Group{Instance: id, Primary: id, Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: second, Zone: "b"}}}
	now := time.Unix(1_700_000_000, 0)
	var status kurabe.InstanceStatus
	for n, c := range []struct {
		name          string
		after         time.Duration
		primary       kurabe.InstanceID
		first, second *kurabe.ServerWaits
		want          []string
		sum           int64
	}{
		{"nothing is known", 0, id, nil, nil, nil, 0},
		{"none", 0, id, waits(0, 0, false), waits(0, 0, false), nil, 0},
		{"the first", 0, id, waits(1, 0, true), nil, []string{told, "1 commits", "No other server"}, 1},
		{"the same", time.Second, id, waits(1, 0, true), nil, nil, 1},
		{"its host has begun anew", time.Second, id, nil, nil, nil, 1},
		{"more", time.Second, id, waits(3, 1, true), nil, []string{later}, 4},
		{"another one has them", time.Second, id, waits(3, 1, false), nil, []string{elsewhere, later}, 4},
		{"the sum", waitsPause, id, waits(4, 1, false), nil, []string{told, "4 commits", "since 2023-11-14", "Another server has them by now"}, 5},
		{"a stop in order", waitsPause, id, waits(4, 9, false), nil, nil, 13},
		{"ended sessions, alone", waitsPause, id, waits(4, 10, true), nil, []string{told, "the sessions of 9 were ended", "No other server"}, 14},
		{"another writes", waitsPause, second, waits(4, 10, false), waits(0, 0, false), nil, 14},
		{"of the other", time.Second, second, waits(4, 10, false), waits(2, 0, false), []string{told, "2 commits", "Another server has them by now"}, 16},
		{"its folder is new", waitsPause, second, waits(1, 0, false), waits(2, 0, false), []string{told, "1 commits"}, 17},
	} {
		now = now.Add(c.after)
		g.Primary = c.primary
		d := &draft{group: g, status: status, w: World{Now: now, Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"},
			Report:  &kurabe.InstanceReport{Instance: id, Role: &kurabe.RoleReport{Waits: c.first}},
			Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{second: {Instance: second, Role: &kurabe.RoleReport{Waits: c.second}}}}}
		d.w.Reports[id] = d.w.Report
		d.tellWaits()
		status = d.status
		if at := status.Waits.UnreplicatedAt; at != "" && at != c.primary {
			t.Errorf("%d, %s: %s is said to have them alone", n, c.name, at)
		}
		var got []string
		for _, e := range d.result.Events {
			got = append(got, e.ID+" "+e.Message)
		}
		if !d.result.LookAgain.IsZero() {
			got = append(got, later)
		}
		text := strings.Join(got, "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%d, %s: no %q in %q", n, c.name, want, text)
			}
		}
		if len(c.want) == 0 && text != "" || status.Waits.Sum() != c.sum {
			t.Errorf("%d, %s: %d in all, told %q", n, c.name, status.Waits.Sum(), text)
		}
	}
}

// Where the server does not write of them, that is known.
func TestUnseenWaits(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	r := &kurabe.InstanceReport{Instance: id, Role: &kurabe.RoleReport{Waits: &kurabe.ServerWaits{Uncounted: true}}}
	d := &draft{group: &kurabe.Group{Instance: id, Primary: id, Members: []kurabe.Member{{ID: id}}}, w: World{Spec: &kurabe.InstanceSpec{ID: id}, Report: r}}
	for _, unseen := range []bool{true, false} {
		r.Role.Waits.Uncounted = unseen
		d.tellWaits()
		if d.status.Waits.Uncounted != unseen {
			t.Errorf("%+v", d.status.Waits)
		}
	}
}
