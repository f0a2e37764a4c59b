package monitoring

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/go-cmp/cmp"

	"kurabe/internal/aws/shape"
	"kurabe/internal/metrics/catalog"
)

func (w world) listed(t *testing.T, in cloudwatch.ListMetricsInput) (list []string) {
	t.Helper()
	for pages := cloudwatch.NewListMetricsPaginator(w, &in); pages.HasMorePages(); {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Metrics) > maxPerPage {
			t.Errorf("%d metrics on a page", len(out.Metrics))
		}
		for _, m := range out.Metrics {
			text := *m.Namespace + " " + *m.MetricName
			for _, d := range m.Dimensions {
				text += " " + *d.Name + "=" + *d.Value
			}
			list = append(list, text)
		}
	}
	return list
}

// A series of a server is listed with each set of dimensions that AWS has for it.
func TestListMetrics(t *testing.T) {
	w := newWorld(t)
	w.measured("CPUUtilization", "shop", catalog.RolePrimary, 0, 1)
	w.measured("CPUUtilization", "shop", catalog.RoleStandby, 0, 1)
	w.measured("CPUUtilization", "gone", catalog.RolePrimary, -4*3600, 1)
	w.measured("ReadIOPS", "trio-instance-1", catalog.RolePrimary, 0, 1)
	w.measured("ReadIOPS", "trio-instance-2", catalog.RoleReader, 0, 1)
	cpu := []string{
		"AWS/RDS CPUUtilization", "AWS/RDS CPUUtilization DBInstanceIdentifier=gone", "AWS/RDS CPUUtilization DBInstanceIdentifier=shop",
		"AWS/RDS CPUUtilization DatabaseClass=db.t3.micro", "AWS/RDS CPUUtilization EngineName=postgres",
	}
	if got := w.listed(t, cloudwatch.ListMetricsInput{MetricName: aws.String("CPUUtilization")}); !cmp.Equal(got, cpu) {
		t.Error(cmp.Diff(cpu, got))
	}
	recent := slices.Delete(slices.Clone(cpu), 1, 2)
	if got := w.listed(t, cloudwatch.ListMetricsInput{MetricName: aws.String("CPUUtilization"), RecentlyActive: types.RecentlyActivePt3h}); !cmp.Equal(got, recent) {
		t.Error(cmp.Diff(recent, got))
	}
	reads := []string{
		"AWS/RDS ReadIOPS", "AWS/RDS ReadIOPS DBClusterIdentifier=trio", "AWS/RDS ReadIOPS DBClusterIdentifier=trio Role=READER", "AWS/RDS ReadIOPS DBClusterIdentifier=trio Role=WRITER",
		"AWS/RDS ReadIOPS DBInstanceIdentifier=trio-instance-1", "AWS/RDS ReadIOPS DBInstanceIdentifier=trio-instance-2",
		"AWS/RDS ReadIOPS DatabaseClass=db.t3.small", "AWS/RDS ReadIOPS EngineName=postgres",
	}
	if got := w.listed(t, cloudwatch.ListMetricsInput{MetricName: aws.String("ReadIOPS"), Namespace: aws.String(catalog.RDS)}); !cmp.Equal(got, reads) {
		t.Error(cmp.Diff(reads, got))
	}
	filters := []types.DimensionFilter{{Name: aws.String("DBClusterIdentifier")}, {Name: aws.String("Role"), Value: aws.String("READER")}}
	if got := w.listed(t, cloudwatch.ListMetricsInput{Dimensions: filters}); !cmp.Equal(got, reads[2:3]) {
		t.Error(got)
	}
	for _, none := range []cloudwatch.ListMetricsInput{{Namespace: aws.String("AWS/EC2")}, {OwningAccount: aws.String("111111111111")}} {
		if got := w.listed(t, none); got != nil {
			t.Error(got)
		}
	}
	out, err := w.Client.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{IncludeLinkedAccounts: aws.Bool(true)})
	if err != nil || len(out.OwningAccounts) != len(out.Metrics) || out.OwningAccounts[0] != "000000000000" {
		t.Errorf("%v %v", out, err)
	}
}

// Every metric that is listed can be asked for, and has data.
func TestWhatIsListedHasData(t *testing.T) {
	w := newWorld(t)
	w.measured("CPUUtilization", "shop", catalog.RolePrimary, 0, 1)
	w.measured("CPUUtilization", "trio-instance-1", catalog.RolePrimary, 0, 1)
	w.measured("CPUUtilization", "trio-instance-3", catalog.RoleReader, 0, 1)
	w.put(t, "mine", types.MetricDatum{MetricName: aws.String("m"), Dimensions: dims("a=1", "b=2"), Value: aws.Float64(1), Timestamp: aws.Time(noon)})
	listed, err := w.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range listed.Metrics {
		q := types.MetricDataQuery{Id: aws.String("m1"), MetricStat: &types.MetricStat{Metric: &m, Period: aws.Int32(60), Stat: aws.String("Sum")}}
		out, err := w.GetMetricData(t.Context(), dataInput(q))
		if err != nil || len(out.MetricDataResults[0].Values) != 1 {
			t.Errorf("%s %v: %v", *m.MetricName, m.Dimensions, err)
		}
	}
}

func TestListMetricsPages(t *testing.T) {
	w := newWorld(t)
	for n := range 1300 {
		w.measured("CPUUtilization", fmt.Sprintf("db%04d", n), catalog.RolePrimary, 0, 1)
	}
	if got := w.listed(t, cloudwatch.ListMetricsInput{}); len(got) != 1302 /* with all, and the engine */ || !slices.IsSorted(got) {
		t.Errorf("%d metrics", len(got))
	}
	_, err := w.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{NextToken: aws.String("abc")})
	wantCode(t, err, "InvalidParameterValue", "Request parameter NextToken is invalid")
	_, err = w.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{RecentlyActive: "PT1H"})
	wantCode(t, err, "InvalidParameterValue", "it is PT3H")
}

func TestNotOffered(t *testing.T) {
	w := newWorld(t)
	_, err := w.GetMetricWidgetImage(t.Context(), &cloudwatch.GetMetricWidgetImageInput{MetricWidget: aws.String("{}")})
	wantCode(t, err, "UnsupportedOperation", "charts are drawn by clients")
	ops := API(nil, nil).Ops
	for _, action := range shape.Monitoring.Actions() {
		if _, works := ops[action]; works == (whyNot(action) != "") {
			t.Errorf("%s: works %v, reason %q", action, works, whyNot(action))
		}
	}
}
