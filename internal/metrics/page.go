package metrics

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe"
)

// ContentType is that of a page (OpenMetrics 1.0).
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// family is one metric: a sample for each thing that has it.
type family struct {
	name, kind, unit, help string
	samples                func(p Page, now time.Time) []sample
}

// Page is what a page tells of.
type Page struct {
	Following []kurabe.Following
	Snapshots []kurabe.SnapshotKnown
	Instances []Instance
	Measured  []Measured
	Topics    []Topic
	// Delivered, Failed and Unqueued count notifications of this server since its start.
	Delivered, Failed, Unqueued int64
}

// Topic is what waits for its subscribers.
type Topic struct {
	Name           string
	Waiting, Bytes int
	GivenUp        int // of the subscriptions that are there
}

// topics makes a sample for each topic.
func topics(one func(Topic) int) func(Page, time.Time) []sample {
	return func(p Page, _ time.Time) (list []sample) {
		for _, t := range p.Topics {
			list = append(list, sample{labels{"topic", t.Name}, float64(one(t))})
		}
		return list
	}
}

func deliveries(p Page, _ time.Time) []sample {
	return []sample{
		{labels{"result", "delivered"}, float64(p.Delivered)}, {labels{"result", "failed"}, float64(p.Failed)}, {labels{"result", "unqueued"}, float64(p.Unqueued)},
	}
}

// following makes the samples of all that follows of those of one.
func following(one func(kurabe.Following, time.Time) []sample) func(Page, time.Time) []sample {
	return func(p Page, now time.Time) (list []sample) {
		for _, f := range p.Following {
			list = append(list, one(f, now)...)
		}
		return list
	}
}

type sample struct {
	labels labels
	value  float64
}

// labels are names and values in turn.
type labels []string

func (l labels) String() string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var parts []string
	for n := 0; n+1 < len(l); n += 2 {
		parts = append(parts, fmt.Sprintf(`%s="%s"`, l[n], quoted.Replace(l[n+1])))
	}
	return strings.Join(parts, ",")
}

// families are all that a page has, in order.
var families = slices.Concat([]family{
	{"kurabe_replica_lag_seconds", "gauge", "seconds", "How old what a follower shows is, as ReplicaLag of RDS; -1 while it does not follow.", following(lags)},
	{"kurabe_standby_in_sync", "gauge", "", "1 while a standby has every commit that was acknowledged, else 0.", following(inSync)},
	{"kurabe_unprotected_seconds", "gauge", "seconds", "For how long commits have gone on without a standby that has them; 0 while one has.", following(unprotected)},
	{"kurabe_failovers", "counter", "", "Failovers that were completed since the instance was made.", following(failovers)},
	{"kurabe_ended_waits", "counter", "", "Commits that ended their wait for the standby before it had answered, by what ended it, since the instance was made.", following(endedWaits)},
	{"kurabe_snapshot_occupied_bytes", "gauge", "bytes", "What would be free on the disk if the snapshot were deleted, as of the last look.", occupied},
	{"kurabe_snapshot_damaged", "gauge", "", "1 for a snapshot whose newest verification or restore met damage, 0 for one that was verified and found sound.", damaged},
	{"kurabe_verified_restore_timestamp_seconds", "gauge", "seconds", "When the newest good verification of a snapshot of the instance ended.", verified},
}, measuredAndLimits(), []family{
	{"kurabe_notifications_waiting", "gauge", "", "Notifications of the topic that a subscription is not done with.", topics(func(t Topic) int { return t.Waiting })},
	{"kurabe_notifications_waiting_bytes", "gauge", "bytes", "What these take in the state store.", topics(func(t Topic) int { return t.Bytes })},
	{"kurabe_notifications_given_up", "counter", "", "Notifications that were not delivered to the topic's subscriptions.", topics(func(t Topic) int { return t.GivenUp })},
	{"kurabe_deliveries", "counter", "", "Notifications of this server since its start: attempts that delivered one, attempts that failed, and events and alarms for which the queue had no room.", deliveries},
})

// Render writes the page.
func Render(w io.Writer, page Page, now time.Time) error {
	var b strings.Builder
	for _, f := range families {
		fmt.Fprintf(&b, "# TYPE %s %s\n", f.name, f.kind)
		if f.unit != "" {
			fmt.Fprintf(&b, "# UNIT %s %s\n", f.name, f.unit)
		}
		fmt.Fprintf(&b, "# HELP %s %s\n", f.name, f.help)
		name := f.name
		if f.kind == "counter" {
			name += "_total"
		}
		for _, s := range f.samples(page, now) {
			fmt.Fprintf(&b, "%s{%s} %s\n", name, s.labels, strconv.FormatFloat(s.value, 'f', -1, 64))
		}
	}
	b.WriteString("# EOF\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// of names an instance or a cluster.
func of(f kurabe.Following) labels {
	if f.Cluster {
		return labels{"cluster", f.Name}
	}
	return labels{"instance", f.Name}
}

func lags(f kurabe.Following, _ time.Time) (list []sample) {
	for _, one := range f.Followers {
		if one.Lag == nil {
			continue
		}
		l := labels{"instance", one.Instance}
		if f.Cluster {
			l = append(l, "cluster", f.Name)
		}
		l = append(l, "server", strconv.Itoa(one.Server.Number()), "kind", string(one.Kind))
		list = append(list, sample{l, one.Lag.Seconds})
	}
	return list
}

func inSync(f kurabe.Following, _ time.Time) []sample {
	switch {
	case !f.Standbys:
		return nil
	case f.Synced:
		return []sample{{of(f), 1}}
	}
	return []sample{{of(f), 0}}
}

func unprotected(f kurabe.Following, now time.Time) []sample {
	alone, known := f.Unprotected(now)
	if !known {
		return nil
	}
	return []sample{{of(f), alone.Seconds()}}
}

func failovers(f kurabe.Following, _ time.Time) []sample {
	if !f.Standbys {
		return nil
	}
	return []sample{{of(f), float64(f.Failovers)}}
}

func endedWaits(f kurabe.Following, _ time.Time) []sample {
	if !f.Standbys || f.Waits == nil {
		return nil
	}
	return []sample{
		{append(of(f), "by", "cancel"), float64(f.Waits.Cancelled)},
		{append(of(f), "by", "session"), float64(f.Waits.Ended)},
	}
}
