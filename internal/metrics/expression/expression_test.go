package expression

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// of writes a series of a minute's period: "1 2 - 4" has no third point.
func of(label, values string) Series {
	s := Series{Label: label, Period: 60}
	for n, word := range strings.Fields(values) {
		var v float64
		if _, err := fmt.Sscan(word, &v); err == nil {
			s.Points = append(s.Points, Point{int64(n) * 60, v})
		}
	}
	return s
}

func show(v Value) string {
	if v.Kind == Number {
		return fmt.Sprint(v.Number)
	}
	var list []string
	for _, s := range v.Series {
		points := make([]string, 4)
		for _, p := range s.Points {
			points[p.At/60] = fmt.Sprint(p.Value)
		}
		text := ""
		for _, p := range points {
			if p == "" {
				p = "-"
			}
			text += p + " "
		}
		list = append(list, strings.TrimSpace(text))
	}
	if v.Kind == Array {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return list[0]
}

func environment() *Environment {
	known := map[string]Series{"m1": of("m1", "1 2 3 4"), "m2": of("m2", "10 - 30 0"), "none": of("none", "")}
	return &Environment{
		From: 0, To: 240,
		Lookup: func(name string) (Value, error) {
			s, ok := known[name]
			if !ok {
				return Value{}, invalid("Undefined variable '%s'", name)
			}
			return Of(s), nil
		},
		Metrics: func(part string) (list []Series) {
			for _, name := range []string{"m1", "m2", "none"} {
				if strings.Contains(name, part) {
					list = append(list, known[name])
				}
			}
			return list
		},
		Found: func(s *Search) (list []Series) {
			for _, m := range []Metric{
				{"AWS/RDS", "CPUUtilization", []Dimension{{"DBInstanceIdentifier", "shop"}}},
				{"AWS/RDS", "ReadIOPS", []Dimension{{"DBInstanceIdentifier", "shop"}}},
				{"AWS/RDS", "CPUUtilization", nil},
			} {
				if s.Matches(m) {
					list = append(list, of(m.Name, "1 1 1 1"))
				}
			}
			return list
		},
	}
}

func TestEval(t *testing.T) {
	for source, want := range map[string]string{
		"m1": "1 2 3 4", "1+2*3": "7", "(1+2)*3": "9", "2^3^2": "512", "-2^2": "-4", "10-4-3": "3", "8/4/2": "1", "1.5e1": "15", "--1": "1", "2e-1*m1": "0.2 0.4 0.6000000000000001 0.8",
		"m1+m2": "11 - 33 4", "m1/m2": "0.1 - 0.1 -", "-m1": "-1 -2 -3 -4", "100-m1": "99 98 97 96", "m1*none": "- - - -",
		"SUM(m1)": "10", "AVG(m1)": "2.5", "MIN(m2)": "0", "MAX(m2)": "30", "m1-AVG(m1)": "-1.5 -0.5 0.5 1.5", "m1+AVG(none)": "- - - -",
		"SUM([m1,m2])": "11 2 33 4", "AVG(METRICS())": "5.5 2 16.5 2", `MAX(METRICS("m"))`: "10 2 30 4", "METRICS('x')": "[]", "SUM(METRICS('x'))": "- - - -",
		"[m1,m2]*2": "[2 4 6 8, 20 - 60 0]", "m1/[m1,m2]": "[1 1 1 1, 0.1 - 0.1 -]", "RATE(m1)": "- 0.016666666666666666 0.016666666666666666 0.016666666666666666",
		"RATE(m2)*60": "- - 10 -30", "FILL(m2,0)": "10 0 30 0", "FILL(m2, REPEAT)": "10 10 30 0", "FILL(m2,LINEAR)": "10 20 30 0", "FILL(none,7)": "7 7 7 7", "FILL(none,REPEAT)": "- - - -",
		"FILL(RATE(m1),LINEAR)*60": "- 1 1 1", "FILL([m2,none],-1)": "[10 -1 30 0, -1 -1 -1 -1]", "m1/PERIOD(m1)*60": "1 2 3 4", "CEIL(m1/2)": "1 1 2 2",
		`SEARCH('{AWS/RDS,DBInstanceIdentifier} MetricName="CPUUtilization"', 'Average', 60)`: "[1 1 1 1]", `SUM(SEARCH("{AWS/RDS,DBInstanceIdentifier} shop", 'Sum'))`: "2 2 2 2",
	} {
		x, err := Parse(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v, err := x.Eval(environment())
		if got := show(v); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", source, got, err, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for source, want := range map[string]string{
		"": "Unexpected end of the expression", "m1+": "Unexpected end", "m1 m2": "Unexpected 'm2'", "(m1": "Unexpected end", "m1)": "Unexpected ')'", "1e": "Invalid number '1e'", "1.2.3": "Invalid number",
		"[m1,m2]+[m1,m2]": "Unsupported operand type(s) for +: 'Array[TimeSeries]' and 'Array[TimeSeries]'", "[1,2]": "An array holds time series", "m9": "Undefined variable 'm9'",
		"STDDEV(m1)": "Unsupported function 'STDDEV': ABS, AVG,", "SUM()": "Wrong number of arguments", "SUM('x')": "Wrong type of argument", "FILL(m1)": "Wrong number", "FILL(m1,m2)": "The second argument of FILL",
		"RATE(1)": "needs a time series", "REPEAT": "Unexpected 'REPEAT'", "SUM(LINEAR)": "Unexpected 'LINEAR'", "FILL(m1,REPEAT+1)": "Unexpected 'REPEAT'", "'x'": "Unexpected string", "PERIOD([m1])": "needs one time series",
		"METRICS(m1)": "Wrong type", "SEARCH('{AWS/RDS}', 'Sum', m1)": "The period of SEARCH", "SEARCH('{AWS/RDS', 'Sum', 60)": "Unexpected end", "SEARCH('', 'Sum')": "The query of SEARCH is empty",
		"SEARCH(':aws.AccountId=1', 'Sum')": "there is one account", "SEARCH('A=(B=c)', 'Sum')": "Unexpected 'B='", "'abc": "Unterminated string", "é": "Unexpected 'é'",
		"SELECT AVG(x) FROM y": "Metrics Insights queries are not supported", strings.Repeat("(", 100): "nested more than", strings.Repeat("1", 3000): "longer than",
		strings.Repeat("SEARCH('a','Sum')+", 11) + "1": "at most 10 searches", "SEARCH('" + strings.Repeat("(", 100) + "', 'Sum')": "nested more than",
	} {
		x, err := Parse(source)
		if err == nil {
			_, err = x.Eval(environment())
		}
		if e := new(Error); !errors.As(err, &e) || !strings.Contains(e.Text, want) {
			t.Errorf("%.60s: %v; want %s", source, err, want)
		}
	}
}

func TestSearch(t *testing.T) {
	cpu := Metric{"AWS/RDS", "CPUUtilization", []Dimension{{"DBInstanceIdentifier", "shop-db1"}}}
	for query, want := range map[string]bool{
		"{AWS/RDS,DBInstanceIdentifier}": true, "{AWS/RDS}": false, "{AWS/RDS,DatabaseClass}": false, `{"AWS/RDS", "DBInstanceIdentifier"} cpu`: true,
		"cpu": true, "utilization": true, "util": false, "CPUUtilization": true, "cpuutilization": true, `"CPUUtilization"`: true, `"cpuutilization"`: false, "RDS": true,
		"MetricName=CPU": true, `MetricName="CPU"`: false, "DBInstanceIdentifier=shop": true, `DBInstanceIdentifier="shop"`: false, "DBInstanceIdentifier=db1": true, "Namespace=AWS": true, "Other=shop": false,
		"cpu shop": true, "cpu AND web": false, "cpu OR web": true, "web OR cpu shop": true, "NOT web": true, "NOT cpu": false, "cpu NOT (shop OR web)": false,
		`MetricName=("ReadIOPS" OR "CPUUtilization")`: true, `DBInstanceIdentifier=(NOT web)`: true, "shop-db1": true, "db1-shop": false,
	} {
		s, err := parseSearch(query)
		if err != nil || s.Matches(cpu) != want {
			t.Errorf("%s: %v, want %v (%v)", query, !want, want, err)
		}
	}
	for value, want := range map[string][]string{
		"CPUUtilization": {"cpu", "utilization"}, "ReadIOPS": {"read", "iops"}, "shop-db1": {"shop", "db1"}, "AWS/RDS": {"aws", "rds"}, "": nil, "--": nil, "DBInstanceIdentifier": {"db", "instance", "identifier"},
	} {
		if got := words(value); !cmp.Equal(got, want) {
			t.Errorf("%s has %q", value, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"m1+m2*-2^3", "SUM([m1,m2])/1e3", "FILL(METRICS('m'),REPEAT)", `SEARCH('{AWS/RDS,DBInstanceIdentifier} MetricName=("a" OR NOT b)', 'Average', 60)`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		x, err := Parse(source)
		if err == nil {
			_, err = x.Eval(environment())
		}
		if err != nil && !errors.As(err, new(*Error)) {
			t.Errorf("%q: %v", source, err)
		}
	})
}
