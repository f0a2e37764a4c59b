package monitoring

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe"
	"kurabe/internal/metrics/catalog"
)

// dims makes dimensions of "Name=value" words.
func dims(words ...string) (list []types.Dimension) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		list = append(list, types.Dimension{Name: &name, Value: &value})
	}
	return list
}

func metricQuery(id, name, stat string, period int32, words ...string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String(catalog.RDS), MetricName: &name, Dimensions: dims(words...)}, Period: &period, Stat: &stat,
	}}
}

func mathQuery(id, expression string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, Expression: &expression}
}

func hidden(q types.MetricDataQuery) types.MetricDataQuery { q.ReturnData = aws.Bool(false); return q }

func dataInput(queries ...types.MetricDataQuery) *cloudwatch.GetMetricDataInput {
	return &cloudwatch.GetMetricDataInput{StartTime: aws.Time(noon), EndTime: aws.Time(noon.Add(5 * time.Minute)), MetricDataQueries: queries, ScanBy: types.ScanByTimestampAscending}
}

// show writes results as "id label: second=value …".
func show(out *cloudwatch.GetMetricDataOutput) string {
	var b strings.Builder
	for _, r := range out.MetricDataResults {
		fmt.Fprintf(&b, "%s %s:", *r.Id, *r.Label)
		for n, at := range r.Timestamps {
			fmt.Fprintf(&b, " %d=%v", at.Unix()-noon.Unix(), r.Values[n])
		}
		if r.StatusCode != types.StatusCodeComplete {
			b.WriteString(" " + string(r.StatusCode))
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String())
}

func (w world) wantData(t *testing.T, in *cloudwatch.GetMetricDataInput, want string) *cloudwatch.GetMetricDataOutput {
	t.Helper()
	out, err := w.GetMetricData(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	return out
}

func TestGetMetricData(t *testing.T) {
	w := newWorld(t)
	for second, cpu := range []float64{10, 20, 30} {
		w.measured("CPUUtilization", "shop", catalog.RolePrimary, second, cpu)
		w.measured("CPUUtilization", "web", catalog.RolePrimary, 60+second, 2*cpu)
		w.measured("CPUUtilization", "shop", catalog.RoleStandby, second, 1000)
		w.measured("CPUUtilization", "trio-instance-1", catalog.RolePrimary, second, 1)
		w.measured("CPUUtilization", "trio-instance-2", catalog.RoleReader, second, 3)
	}
	w.measured("ReadIOPS", "shop", catalog.RolePrimary, 0, 7)
	one := func(stat string, period int32, words ...string) *cloudwatch.GetMetricDataInput {
		return dataInput(metricQuery("m1", "CPUUtilization", stat, period, words...))
	}
	const shop = "DBInstanceIdentifier=shop"
	for _, c := range []struct {
		name string
		in   *cloudwatch.GetMetricDataInput
		want string
	}{
		{"average", one("Average", 60, shop), "m1 CPUUtilization: 0=20"},
		{"sum", one("Sum", 60, shop), "m1 CPUUtilization: 0=60"},
		{"count", one("SampleCount", 60, shop), "m1 CPUUtilization: 0=3"},
		{"each second", one("Maximum", 1, shop), "m1 CPUUtilization: 0=10 1=20 2=30"},
		{"median", one("p50", 60, shop), "m1 CPUUtilization: 0=20"},
		{"p0.0 and p100", dataInput(metricQuery("a", "CPUUtilization", "p0.0", 60, shop), metricQuery("b", "CPUUtilization", "p100", 60, shop)), "a CPUUtilization: 0=10\nb CPUUtilization: 0=30"},
		{"class", one("Maximum", 300, "DatabaseClass=db.t3.small"), "m1 CPUUtilization: 0=60"},
		{"engine", one("SampleCount", 300, "EngineName=postgres"), "m1 CPUUtilization: 0=12"},
		{"all", one("SampleCount", 300), "m1 CPUUtilization: 0=12"},
		{"cluster", one("Average", 60, "DBClusterIdentifier=trio"), "m1 CPUUtilization: 0=2"},
		{"writer", one("Average", 60, "Role=WRITER", "DBClusterIdentifier=trio"), "m1 CPUUtilization: 0=1"},
		{"reader", one("Average", 60, "DBClusterIdentifier=trio", "Role=READER"), "m1 CPUUtilization: 0=3"},
		{"unknown instance", one("Average", 60, "DBInstanceIdentifier=none"), "m1 CPUUtilization:"},
		{"unknown class", one("Average", 60, "DatabaseClass=db.none"), "m1 CPUUtilization:"},
		{"unknown dimensions", one("Average", 60, shop, "EngineName=postgres"), "m1 CPUUtilization:"},
		{"unknown metric", dataInput(metricQuery("m1", "Nonsense", "Average", 60)), "m1 Nonsense:"},
		{"an expression", dataInput(hidden(metricQuery("m1", "CPUUtilization", "Average", 60, shop)), mathQuery("e1", "100-m1")), "e1 e1: 0=80"},
		{"of expressions", dataInput(hidden(metricQuery("m1", "CPUUtilization", "Average", 1, shop)), hidden(mathQuery("mean", "AVG(m1)")), mathQuery("e1", "m1-mean")), "e1 e1: 0=-10 1=0 2=10"},
		{"all metrics", dataInput(hidden(metricQuery("m1", "CPUUtilization", "Average", 60, shop)), hidden(metricQuery("m2", "CPUUtilization", "Average", 60, "DBInstanceIdentifier=web")), mathQuery("e1", "SUM(METRICS())")), "e1 e1: 0=20 60=40"},
		{"search", dataInput(mathQuery("e1", `SEARCH('{AWS/RDS,DBInstanceIdentifier} MetricName="CPUUtilization"', 'Maximum', 300)`)),
			"e1 shop: 0=30\ne1 trio-instance-1: 0=1\ne1 trio-instance-2: 0=3\ne1 web: 0=60"},
		{"search by value", dataInput(mathQuery("e1", `SEARCH('{AWS/RDS,DBInstanceIdentifier} DBInstanceIdentifier="shop"', 'Maximum', 300)`)), "e1 shop CPUUtilization: 0=30\ne1 shop ReadIOPS: 0=7"},
		{"fill", dataInput(hidden(metricQuery("m1", "ReadIOPS", "Sum", 60, shop)), mathQuery("e1", "FILL(m1, 0)")), "e1 e1: 0=7 60=0 120=0 180=0 240=0"},
	} {
		t.Run(c.name, func(t *testing.T) { w.wantData(t, c.in, c.want) })
	}
	in := one("Average", 60, shop)
	in.MetricDataQueries[0].Label, in.MetricDataQueries[0].MetricStat.Unit = aws.String("load"), types.StandardUnitPercent
	w.wantData(t, in, "m1 load: 0=20")
	in.MetricDataQueries[0].MetricStat.Unit = types.StandardUnitBytes
	w.wantData(t, in, "m1 load:")
}

// Of a time that nobody keeps there is nothing to ask, however long it is.
func TestLongTime(t *testing.T) {
	w := newWorld(t)
	w.measured("CPUUtilization", "shop", catalog.RolePrimary, 0, 1)
	w.measured("CPUUtilization", "shop", catalog.RolePrimary, -4*3600, 1)
	in := dataInput(metricQuery("m1", "CPUUtilization", "Sum", 1), metricQuery("m2", "CPUUtilization", "Sum", 60))
	in.StartTime, in.EndTime = aws.Time(time.Unix(0, 0)), aws.Time(noon.AddDate(100, 0, 0))
	w.wantData(t, in, "m1 CPUUtilization: 0=1\nm2 CPUUtilization: -14400=1 0=1")
	for _, q := range w.asked {
		if most := 21600 + 120; int(q.To.Sub(q.From)/q.Period) > most {
			t.Errorf("%d periods were asked for", q.To.Sub(q.From)/q.Period)
		}
	}
	in.StartTime, in.EndTime = aws.Time(noon.AddDate(-2, 0, 0)), aws.Time(noon.AddDate(-1, 0, 0))
	w.wantData(t, in, "m1 CPUUtilization:\nm2 CPUUtilization:")
}

// A failover shows the primary only: each server's samples belong to the role it had then.
func TestFailover(t *testing.T) {
	w := newWorld(t)
	for second := range 6 {
		one, other := catalog.RolePrimary, catalog.RoleStandby
		if second >= 3 {
			one, other = other, one
		}
		w.measured("CPUUtilization", "shop", one, second, 1)
		w.measured("CPUUtilization", "shop", other, second, 2)
	}
	w.wantData(t, dataInput(metricQuery("m1", "CPUUtilization", "Average", 1, "DBInstanceIdentifier=shop")), "m1 CPUUtilization: 0=1 1=1 2=1 3=2 4=2 5=2")
}

// What hosts that are away may hold is not there, and the answer says so.
func TestHostAway(t *testing.T) {
	w := newWorld(t)
	w.measured("CPUUtilization", "shop", catalog.RolePrimary, 1, 2)
	in := dataInput(metricQuery("m1", "CPUUtilization", "Average", 60, "DBInstanceIdentifier=shop"), mathQuery("e1", "m1*2"))
	if out := w.wantData(t, in, "m1 CPUUtilization: 0=2\ne1 e1: 0=4"); len(out.Messages) > 0 {
		t.Errorf("%v", out.Messages)
	}
	w.away = []kurabe.HostID{"h-2", "h-3"}
	out := w.wantData(t, in, "m1 CPUUtilization: 0=2 PartialData\ne1 e1: 0=4 PartialData")
	if len(out.Messages) != 2 || !strings.Contains(*out.Messages[1].Value, "h-3") || out.NextToken != nil {
		t.Errorf("%v", out.Messages)
	}
}

// Pages follow the order of time, over all results, and show each data point once, although
// new ones come in between.
func TestPages(t *testing.T) {
	for _, scan := range []types.ScanBy{types.ScanByTimestampAscending, types.ScanByTimestampDescending} {
		for size := int32(1); size <= 9; size++ {
			w := newWorld(t)
			for second := range 4 {
				w.measured("CPUUtilization", "shop", catalog.RolePrimary, second, 1)
				w.measured("CPUUtilization", "web", catalog.RolePrimary, 2*second, 2)
			}
			in := dataInput(metricQuery("m1", "CPUUtilization", "Sum", 1, "DBInstanceIdentifier=shop"), metricQuery("m2", "CPUUtilization", "Sum", 1, "DBInstanceIdentifier=web"))
			in.ScanBy, in.MaxDatapoints = scan, aws.Int32(size)
			got, pages := map[string][]int64{}, 0
			for {
				out, err := w.GetMetricData(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				points := 0
				for _, r := range out.MetricDataResults {
					points += len(r.Timestamps)
					for _, at := range r.Timestamps {
						got[*r.Id] = append(got[*r.Id], at.Unix()-noon.Unix())
					}
				}
				if points > int(size) {
					t.Errorf("%d data points on a page of %d", points, size)
				}
				if scan == types.ScanByTimestampDescending {
					w.measured("CPUUtilization", "shop", catalog.RolePrimary, 100+pages, 1)
				}
				pages++
				if in.NextToken = out.NextToken; in.NextToken == nil {
					break
				}
			}
			want := `{"m1":[0,1,2,3],"m2":[0,2,4,6]}`
			if scan == types.ScanByTimestampDescending {
				want = `{"m1":[3,2,1,0],"m2":[6,4,2,0]}`
			}
			if text, _ := json.Marshal(got); string(text) != want || pages != (8+int(size)-1)/int(size) {
				t.Errorf("%s, %d at once: %s in %d pages", scan, size, text, pages)
			}
		}
	}
}

func TestGetMetricDataRefused(t *testing.T) {
	w := newWorld(t)
	good := func() types.MetricDataQuery { return metricQuery("m1", "CPUUtilization", "Average", 60) }
	edit := func(f func(*types.MetricDataQuery)) *cloudwatch.GetMetricDataInput {
		q := good()
		f(&q)
		return dataInput(q)
	}
	whole := func(f func(*cloudwatch.GetMetricDataInput)) *cloudwatch.GetMetricDataInput {
		in := dataInput(good())
		f(in)
		return in
	}
	for _, c := range []struct {
		name string
		in   *cloudwatch.GetMetricDataInput
		code string
		text string
	}{
		{"no queries", whole(func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries = []types.MetricDataQuery{} }), "ValidationError", "MetricDataQueries must not have a size less than 1"},
		{"end before start", whole(func(in *cloudwatch.GetMetricDataInput) { in.EndTime = aws.Time(noon.Add(-1)) }), "ValidationError", "The parameter EndTime must be greater than StartTime."},
		{"no time", whole(func(in *cloudwatch.GetMetricDataInput) { in.EndTime = in.StartTime }), "ValidationError", "The parameter StartTime must not equal parameter EndTime."},
		{"token", whole(func(in *cloudwatch.GetMetricDataInput) { in.NextToken = aws.String("x") }), "InvalidNextToken", "NextToken is invalid"},
		{"page", whole(func(in *cloudwatch.GetMetricDataInput) { in.MaxDatapoints = aws.Int32(0) }), "ValidationError", "MaxDatapoints must be between 1 and 100800"},
		{"id", edit(func(q *types.MetricDataQuery) { q.Id = aws.String("M1") }), "ValidationError", "MetricDataQueries.member.1.Id does not match"},
		{"twice", dataInput(good(), good()), "ValidationError", "The values for parameter id in MetricDataQueries are not unique."},
		{"neither", edit(func(q *types.MetricDataQuery) { q.MetricStat = nil }), "ValidationError", "The parameter MetricDataQueries.member.1.MetricStat is required."},
		{"both", edit(func(q *types.MetricDataQuery) { q.Expression = aws.String("1") }), "ValidationError", "Expression and MetricDataQueries.member.1.MetricStat are mutually exclusive"},
		{"period", edit(func(q *types.MetricDataQuery) { q.MetricStat.Period = aws.Int32(61) }), "ValidationError", "Period must be 1, 5, 10, 20, 30 or a multiple of 60"},
		{"zero period", edit(func(q *types.MetricDataQuery) { q.MetricStat.Period = aws.Int32(0) }), "ValidationError", "Period must be"},
		{"two periods", edit(func(q *types.MetricDataQuery) { q.Period = aws.Int32(60) }), "ValidationError", "Period and MetricDataQueries.member.1.MetricStat are mutually exclusive"},
		{"statistic", edit(func(q *types.MetricDataQuery) { q.MetricStat.Stat = aws.String("Median") }), "ValidationError", "The value Median for parameter MetricDataQueries.member.1.MetricStat.Stat is not supported: it is"},
		{"p101", edit(func(q *types.MetricDataQuery) { q.MetricStat.Stat = aws.String("p100.1") }), "ValidationError", "from p0.0 to p100"},
		{"trimmed", edit(func(q *types.MetricDataQuery) { q.MetricStat.Stat = aws.String("tm90") }), "ValidationError", "trimmed statistics are not supported"},
		{"range", edit(func(q *types.MetricDataQuery) { q.MetricStat.Stat = aws.String("PR(10:20)") }), "ValidationError", "trimmed statistics"},
		{"account", edit(func(q *types.MetricDataQuery) { q.AccountId = aws.String("111111111111") }), "ValidationError", "there is one account"},
		{"dynamic label", edit(func(q *types.MetricDataQuery) { q.Label = aws.String("${LAST}") }), "ValidationError", "labels are not dynamic"},
		{"syntax", dataInput(mathQuery("e1", "1 +")), "ValidationError", "Error in expression 'e1' [Unexpected end of the expression]"},
		{"undefined", dataInput(mathQuery("e1", "m7*2")), "ValidationError", "Error in expression 'e1' [Undefined variable 'm7']"},
		{"circular", dataInput(mathQuery("e1", "e2"), mathQuery("e2", "e1")), "ValidationError", "Error in expression 'e1' [Circular reference: e1, e2, e1]"},
		{"a number", dataInput(mathQuery("e1", "1+1")), "ValidationError", "Error in expression 'e1' [The result is a number"},
		{"search statistic", dataInput(mathQuery("e1", "SEARCH('cpu', 'Mean', 60)")), "ValidationError", "Unsupported statistic 'Mean'"},
		{"search period", dataInput(mathQuery("e1", "SEARCH('cpu', 'Average', 7)")), "ValidationError", "The period of SEARCH must be"},
		{"too much", whole(func(in *cloudwatch.GetMetricDataInput) {
			in.StartTime = aws.Time(noon.Add(-20 * 24 * time.Hour))
			for n := range 60 {
				in.MetricDataQueries = append(in.MetricDataQueries, metricQuery(fmt.Sprintf("x%d", n), "CPUUtilization", "Average", 60))
			}
		}), "ValidationError", "exceeds the limit of 1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.GetMetricData(t.Context(), c.in)
			wantCode(t, err, c.code, c.text)
		})
	}
}
