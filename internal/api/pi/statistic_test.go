package pi

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/load"
)

// known is a source with the counters of a statement.
type known struct {
	Source
	asked load.CountQuery
}

func (k *known) LoadCounts(_ context.Context, q load.CountQuery) (load.Counts, error) {
	k.asked = q
	// 30 calls with 90 rows in 1.5 s, counted for 20 s.
	lists := map[kurabe.StatementCounter][]float64{kurabe.StatementCalls: {30}, kurabe.StatementRows: {90}, kurabe.StatementMicroseconds: {1.5e6}}
	c := load.Counts{Seconds: []float64{20}, Of: map[string][][]float64{"A": {}}}
	for _, counter := range q.Counters {
		c.Of["A"] = append(c.Of["A"], lists[counter])
	}
	return c, nil
}

func TestAdditionalMetrics(t *testing.T) {
	source := &known{}
	a, counted := API{Source: source}, resource{id: "db-A", counted: true}
	by, err := choose("GroupBy", &DimensionGroup{Group: &groups[7].name})
	if err != nil || by.name != tokenizedGroup {
		t.Fatal(by.name, err)
	}
	name := func(s string) string { return statisticPrefix + s + statisticSuffix }
	calls, rows, time, latency := name("calls_per_sec"), name("rows_per_call"), name("total_time_per_sec"), name("avg_latency_per_call")
	keys := []load.Group{{Values: []string{"A"}}, {Values: []string{"B"}}, {Values: []string{""}}}
	out := make([]DimensionKeyDescription, len(keys))
	if err := a.additional(t.Context(), counted, span{0, 60, 1}, []string{calls, rows, time, latency}, by, keys, out); err != nil {
		t.Fatal(err)
	}
	want := []map[string]float64{{calls: 1.5, rows: 3, time: 0.075, latency: 50}, {calls: 0, time: 0}, {}}
	for n := range out {
		if !reflect.DeepEqual(out[n].AdditionalMetrics, want[n]) {
			t.Errorf("%v: %v, want %v", keys[n].Values, out[n].AdditionalMetrics, want[n])
		}
	}
	if source.asked.Instance != "db-A" || source.asked.To != 60 || source.asked.Period != 0 || !reflect.DeepEqual(source.asked.IDs, []string{"A", "B", ""}) {
		t.Errorf("asked %+v", source.asked)
	}
	other, _ := choose("GroupBy", &DimensionGroup{Group: &groups[0].name})
	for _, c := range []struct {
		metric string
		r      resource
		by     chosen
		want   string
	}{
		{"db.sql_tokenized.stats.calls_per_sec.sum", counted, by, "not available"}, {calls, resource{}, by, "not available"},
		{calls, counted, other, tokenizedGroup}, {"db.sql.stats.calls_per_sec.avg", counted, by, "not available"},
	} {
		if err := a.additional(t.Context(), c.r, span{0, 60, 1}, []string{c.metric}, c.by, keys, out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.metric, err)
		}
	}
}
