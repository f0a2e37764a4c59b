package alarm

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/must"
)

const (
	// toldPoints is how many data points a reason lists; of more it lists the newest.
	toldPoints = 5
	// dataBytesMax is CloudWatch's bound of the data of a reason, which therefore tell of the
	// newest data points only where there are many.
	dataBytesMax  = 4000
	dataPointsMax = 150
)

var crossed = map[kurabe.Comparison]string{
	kurabe.GreaterOrEqual: "greater than or equal to", kurabe.Greater: "greater than",
	kurabe.Less: "less than", kurabe.LessOrEqual: "less than or equal to",
}

var treated = map[kurabe.MissingData]string{kurabe.MissingIsBreaching: "Breaching", kurabe.MissingIsNotBreaching: "NonBreaching"}

// reason says why in CloudWatch's words, which people's tools read.
func (d Due) reason(e evidence, state kurabe.AlarmState) string {
	if state == kurabe.AlarmInsufficientData {
		return fmt.Sprintf("Insufficient Data: %s unknown.", were(d.EvaluationPeriods, "datapoint"))
	}
	filled := ""
	if word := treated[d.MissingData]; e.filled > 0 && word != "" {
		filled = fmt.Sprintf("%s treated as [%s]", were(e.filled, "missing datapoint"), word)
	}
	told, others := d.split(e.points)
	not, arrow, least := "", "OK -> ALARM", d.ToAlarm()
	if state == kurabe.AlarmOK {
		told, not, arrow, least = others, "not ", "ALARM -> OK", d.EvaluationPeriods-d.ToAlarm()+1
	}
	switch {
	case len(e.points) == 0:
		return fmt.Sprintf("Threshold Crossed: no datapoints were received for %s and %s.", plural(d.EvaluationPeriods, "period"), filled)
	case len(told) == 0:
		return fmt.Sprintf("Threshold Crossed: %s.", filled)
	}
	if filled != "" {
		filled = " and " + filled
	}
	count, least1 := plural(len(told), "datapoint"), ""
	if d.DatapointsToAlarm > 0 {
		count = fmt.Sprintf("%d out of the last %d datapoints", len(told), d.EvaluationPeriods)
		least1 = fmt.Sprintf(" (minimum %s for %s transition)", plural(least, "datapoint"), arrow)
	}
	was := "were"
	if len(told) == 1 {
		was = "was"
	}
	list := listed(told)
	threshold := fmt.Sprintf("%s %s%s the threshold (%s)", was, not, crossed[d.Comparison], number(d.Threshold))
	if len(told) < toldPoints {
		return fmt.Sprintf("Threshold Crossed: %s %s %s%s%s.", count, list, threshold, filled, least1)
	}
	return fmt.Sprintf("Threshold Crossed: %s %s%s. The most recent datapoints which crossed the threshold: %s%s.", count, threshold, filled, list, least1)
}

func listed(points []Point) string {
	texts := make([]string, min(len(points), toldPoints))
	for n := range texts {
		texts[n] = fmt.Sprintf("%s (%s)", number(points[n].Value), time.Unix(points[n].At, 0).UTC().Format("02/01/06 15:04:05"))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func were(n int, word string) string {
	if n == 1 {
		return plural(n, word) + " was"
	}
	return plural(n, word) + " were"
}

// number is a float as CloudWatch writes it, which is as Java does.
type number float64

func (x number) String() string {
	size := max(float64(x), -float64(x))
	if size == 0 || size >= 1e-3 && size < 1e7 {
		text := strconv.FormatFloat(float64(x), 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(float64(x), 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	power, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(power)
}

// MarshalJSON implements json.Marshaler.
func (x number) MarshalJSON() ([]byte, error) { return []byte(x.String()), nil }

// moment is a time as CloudWatch writes it in texts.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000-0700") }

type evaluated struct {
	Timestamp string  `json:"timestamp"`
	Samples   *number `json:"sampleCount,omitempty"`
	Value     *number `json:"value,omitempty"`
}

type reasonData struct {
	Version   string      `json:"version"`
	QueryDate string      `json:"queryDate"`
	StartDate string      `json:"startDate,omitempty"`
	Unit      string      `json:"unit,omitempty"`
	Statistic string      `json:"statistic,omitempty"`
	Period    int64       `json:"period"`
	Recent    []number    `json:"recentDatapoints"` // newest last
	Threshold number      `json:"threshold"`
	Evaluated []evaluated `json:"evaluatedDatapoints"` // newest first
}

// data is the reason for programs.
func (d Due) data(e evidence, now time.Time) string {
	r := reasonData{Version: "1.0", QueryDate: moment(now), Period: d.Period, Threshold: number(d.Threshold), Recent: []number{}}
	if q := d.Queries[d.Watched]; !d.Math() {
		r.Unit, r.Statistic = q.Unit, q.Stat
	}
	at := map[int64]Point{}
	for _, p := range e.points {
		at[p.At] = p
		r.StartDate = moment(time.Unix(p.At, 0))
	}
	for n := min(len(e.points), dataPointsMax) - 1; n >= 0; n-- {
		r.Recent = append(r.Recent, number(e.points[n].Value))
	}
	begins := d.span(e)
	for _, begin := range begins[:min(len(begins), dataPointsMax)] {
		one := evaluated{Timestamp: moment(time.Unix(begin, 0))}
		if p, ok := at[begin]; ok {
			value, samples := number(p.Value), number(p.Samples)
			one.Value = &value
			if samples > 0 {
				one.Samples = &samples
			}
		}
		r.Evaluated = append(r.Evaluated, one)
	}
	for {
		text := asJSON(r)
		switch {
		case len(text) <= dataBytesMax:
			return text
		case len(r.Evaluated) > toldPoints:
			r.Evaluated = r.Evaluated[:len(r.Evaluated)-1]
		default:
			r.Recent = r.Recent[1:]
		}
	}
}

// asJSON writes what can be written, without escapes that only a browser would need.
func asJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must.True(e.Encode(v) == nil, "our own types can be written")
	return strings.TrimSuffix(b.String(), "\n")
}
