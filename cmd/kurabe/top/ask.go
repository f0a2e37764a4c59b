package top

import (
	"context"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
)

var (
	insights   = client.JSONService{Name: "pi", Target: "PerformanceInsightsv20180227", Version: "1.1"}
	cloudWatch = client.JSONService{Name: "monitoring", Target: "GraniteServiceVersion20100801", Version: "1.0"}
)

const (
	shownTime  = 5 * time.Minute // of the chart
	tableTime  = time.Minute     // of the tables
	metricTime = 15 * time.Second
	loadMetric = "db.load.avg"

	callsMetric   = "db.sql_tokenized.stats.calls_per_sec.avg"
	latencyMetric = "db.sql_tokenized.stats.avg_latency_per_call.avg"
)

// slice is what the table of the load tells apart, and the dimension that names its rows.
type slice struct{ title, group, name string }

var slicings = []slice{
	{"statement", "db.sql_tokenized", "db.sql_tokenized.statement"},
	{"wait", "db.wait_event", "db.wait_event.name"},
	{"user", "db.user", "db.user.name"},
	{"host", "db.host", "db.host.name"},
}

// group and the others are of the service "pi", with times as its JSON has them.
type group struct {
	Group string
	Limit int
}

type loadRequest struct {
	ServiceType, Identifier string
	StartTime, EndTime      int64
	PeriodInSeconds         int           `json:",omitempty"`
	MetricQueries           []metricQuery `json:",omitempty"`
	Metric                  string        `json:",omitempty"`
	GroupBy, PartitionBy    *group        `json:",omitempty"`
	AdditionalMetrics       []string      `json:",omitempty"`
}

type metricQuery struct {
	Metric  string
	GroupBy group
}

type metricsAnswer struct {
	MetricList []struct {
		Key        struct{ Dimensions map[string]string }
		DataPoints []struct{ Timestamp, Value float64 }
	}
}

type keysAnswer struct {
	PartitionKeys []struct{ Dimensions map[string]string }
	Keys          []struct {
		Dimensions        map[string]string
		Total             float64
		Partitions        []float64
		AdditionalMetrics map[string]float64
	}
}

// look asks for a picture. Where no load is kept, the picture says so.
func look(ctx context.Context, c *client.Client, name string, by slice, now time.Time) (picture, error) {
	p := picture{name: name, by: by.title, at: now}
	i, err := c.Find(ctx, name)
	if err != nil {
		return p, err
	}
	p.engine = aws.ToString(i.Engine) + " " + aws.ToString(i.EngineVersion)
	p.class, p.status = aws.ToString(i.DBInstanceClass), aws.ToString(i.DBInstanceStatus)
	p.iopsMax, p.throughputMax = float64(aws.ToInt32(i.Iops)), float64(aws.ToInt32(i.StorageThroughput))
	if class, known := kurabe.FindClass(p.class); known {
		p.cpus = class.CPUs
	}
	if p.metrics, err = metrics(ctx, c, name, now); err != nil {
		return p, err
	}
	if p.kept = aws.ToBool(i.PerformanceInsightsEnabled); !p.kept {
		return p, nil
	}
	ask := loadRequest{ServiceType: "RDS", Identifier: aws.ToString(i.DbiResourceId), EndTime: now.Unix()}
	if p.waits, p.sampled, err = waits(ctx, c, ask); err != nil {
		return p, err
	}
	ask.StartTime, ask.Metric = now.Add(-tableTime).Unix(), loadMetric
	ask.GroupBy, ask.PartitionBy = &group{by.group, 10}, &group{"db.wait_event", 10}
	if by == slicings[0] && kurabe.EngineName(aws.ToString(i.Engine)) == kurabe.Postgres {
		ask.AdditionalMetrics = []string{callsMetric, latencyMetric}
	}
	keys, err := client.AskService[keysAnswer](ctx, c, insights, "DescribeDimensionKeys", ask)
	if err != nil {
		return p, err
	}
	p.rows = keys.rows(by.name)
	list, err := client.Ask[ownapi.DescribeSessionsOutput](ctx, c, "DescribeSessions", ownapi.DescribeSessionsInput{Name: name})
	if err != nil {
		p.unlisted = err.Error() // a server that hangs lists none
		return p, nil
	}
	p.sessions = list.Sessions
	return p, nil
}

// waitName names a wait event as its engine does, after its type.
func waitName(d map[string]string) string {
	return waitOf(d["db.wait_event.type"], d["db.wait_event.name"])
}

func waitOf(kind, name string) string {
	if kind == name || kind == "" {
		return name
	}
	return kind + ":" + name
}

// rows are the keys with their wait events, the largest first.
func (a keysAnswer) rows(name string) []row {
	var rows []row
	for _, k := range a.Keys {
		r := row{name: k.Dimensions[name], load: k.Total}
		r.calls, r.counted = k.AdditionalMetrics[callsMetric]
		r.latency = k.AdditionalMetrics[latencyMetric]
		for n, load := range k.Partitions {
			if load > 0 {
				r.parts = append(r.parts, partOf{waitName(a.PartitionKeys[n].Dimensions), load})
			}
		}
		sort.SliceStable(r.parts, func(i, j int) bool { return r.parts[i].load > r.parts[j].load })
		rows = append(rows, r)
	}
	return rows
}

// waits is the load by wait event in each second that is shown, and how many seconds of tableTime
// were sampled.
func waits(ctx context.Context, c *client.Client, ask loadRequest) (list []wait, sampled int, err error) {
	ask.StartTime, ask.PeriodInSeconds = ask.EndTime-int64(shownTime/time.Second), 1
	ask.MetricQueries = []metricQuery{{loadMetric, group{"db.wait_event", 8}}}
	answer, err := client.AskService[metricsAnswer](ctx, c, insights, "GetResourceMetrics", ask)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range answer.MetricList {
		if len(m.Key.Dimensions) == 0 { // of all
			for _, d := range m.DataPoints {
				if int64(d.Timestamp) > ask.EndTime-int64(tableTime/time.Second) {
					sampled++
				}
			}
			continue
		}
		w := wait{name: waitName(m.Key.Dimensions), seconds: make([]float64, shownTime/time.Second)}
		for _, d := range m.DataPoints {
			if n := int64(d.Timestamp) - ask.StartTime - 1; n >= 0 && n < int64(len(w.seconds)) {
				w.seconds[n] = d.Value
			}
		}
		list = append(list, w)
	}
	return list, sampled, nil
}

var metricNames = []string{"CPUUtilization", "DatabaseConnections", "ReadIOPS", "WriteIOPS", "ReadThroughput", "WriteThroughput"}

// metrics are the newest values of CloudWatch's metrics; one that is not measured is absent.
func metrics(ctx context.Context, c *client.Client, name string, now time.Time) (map[string]float64, error) {
	type object map[string]any
	var queries []object
	for _, metric := range metricNames {
		queries = append(queries, object{"Id": "m" + metric, "MetricStat": object{"Period": 1, "Stat": "Average", "Metric": object{
			"Namespace": "AWS/RDS", "MetricName": metric, "Dimensions": []object{{"Name": "DBInstanceIdentifier", "Value": name}}}}})
	}
	type data struct {
		MetricDataResults []struct {
			ID     string `json:"Id"`
			Values []float64
		}
	}
	answer, err := client.AskService[data](ctx, c, cloudWatch, "GetMetricData", object{
		"StartTime": now.Add(-metricTime).Unix(), "EndTime": now.Unix(), "ScanBy": "TimestampDescending", "MetricDataQueries": queries})
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, r := range answer.MetricDataResults {
		if len(r.Values) > 0 {
			values[r.ID[1:]] = r.Values[0]
		}
	}
	return values, nil
}
