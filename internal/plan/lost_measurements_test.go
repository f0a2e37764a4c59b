package plan

import (
	"testing"
	"time"

	"kurabe"
)

// Each loss of each host is told once.
func TestTellLostMeasurements(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	lost := func(host kurabe.HostID, times ...time.Duration) *kurabe.InstanceReport {
		r := &kurabe.InstanceReport{Host: host, Instance: "db-A"}
		for _, after := range times {
			r.Lost = append(r.Lost, kurabe.LostMeasurements{What: "metrics", At: at.Add(after), Reason: "damaged"})
		}
		return r
	}
	var status kurabe.InstanceStatus
	for n, c := range []struct {
		report *kurabe.InstanceReport
		told   int
	}{
		{lost("h1"), 0}, {lost("h1", time.Hour), 1}, {lost("h1", time.Hour), 0}, {lost("h2", time.Minute), 1}, {lost("h2", time.Minute), 0},
		{lost("h1", time.Hour), 0}, {lost("h1", 3*time.Hour, 2*time.Hour), 2}, {lost("h1", 3*time.Hour, 2*time.Hour), 0},
	} {
		d := &draft{w: World{Now: at, Spec: &kurabe.InstanceSpec{ID: "db-A", Name: "shop"}}, status: status}
		d.tellLostMeasurements(c.report)
		if len(d.result.Events) != c.told {
			t.Errorf("%d: told %+v", n, d.result.Events)
		}
		for _, e := range d.result.Events {
			if e.ID != "KURABE-EVENT-0072" || e.Source != "shop" {
				t.Errorf("%d: %+v", n, e)
			}
		}
		status = d.status
	}
}
