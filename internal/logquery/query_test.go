package logquery

import (
	"errors"
	"strings"
	"testing"
)

var lines = []string{
	`{"level":"INFO","t1":10,"t2":14.5,"user":{"name":"ann","tags":["a","b"]},"ok":true}`,
	`{"level":"ERROR","t1":20,"t2":21,"user":{"name":"bob"},"ok":false,"text":"say \"hi\" \u00e9"}`,
	`plain text duration: 12.5 ms user=ann`,
	`plain text duration: 7 ms user=bob`,
	"2020-07-01T12:00:00.000Z\t6f1d7c5e-0000-0000-0000-000000000000\tINFO\t{\"t1\": 1, \"t2\": 4}",
	`ERROR [7] 10.0.0.5 failed`,
}

func TestQueries(t *testing.T) {
	list := blocks(2, lines...)
	for query, want := range map[string]string{
		`fields t2 - t1 as d | filter level = "INFO"`:                                                                    "d=4.5\n",
		`fields @timestamp, user.name, user.tags.1 | filter ispresent(user.name) | sort @timestamp`:                      "@timestamp=2026-03-01 10:00:00.000 user.name=ann user.tags.1=b\n@timestamp=2026-03-01 10:00:01.000 user.name=bob\n",
		`filter @message like /ERROR/ | stats count(*)`:                                                                  "count(*)=2\n",
		`filter @message like /(?i)error|duration/ | stats count(*) as n`:                                                "n=4\n",
		`filter @message not like "plain" | stats count() as n`:                                                          "n=4\n",
		`filter @message =~ /^plain.*bob$/ | stats count(*) as n`:                                                        "n=1\n",
		`parse @message "duration: * ms user=*" as d, u | filter ispresent(d) | display d, u | sort d desc`:              "d=12.5 u=ann\nd=7 u=bob\n",
		`parse @message /duration: (?<d>[0-9.]+) ms/ | stats sum(d), avg(d), max(d), count(d)`:                           "sum(d)=19.5 avg(d)=9.75 max(d)=12.5 count(d)=2\n",
		`stats count(*) as n by bin(2s) as b | sort b desc | limit 2`:                                                    "b=2026-03-01 10:00:04.000 n=2\nb=2026-03-01 10:00:02.000 n=2\n",
		`stats count(*) by bin(3s)`:                                                                                      "bin(3s)=2026-03-01 10:00:00.000 count(*)=3\nbin(3s)=2026-03-01 10:00:03.000 count(*)=3\n",
		`stats count(*) as n by bin(2s) | sort bin(2s) desc | limit 1`:                                                   "bin(2s)=2026-03-01 10:00:04.000 n=2\n",
		`stats count(*) as n by bin(2s) | stats max(n) as most, count(*) as bins`:                                        "most=2 bins=3\n",
		`stats max(t2) as a, min(t1) as b, a - b as c`:                                                                   "a=21 b=1 c=20\n",
		`fields ok | filter ok = true | display ok`:                                                                      "ok=1\n",
		`filter ok = "false" | display user.name`:                                                                        "user.name=bob\n",
		`filter text like 'é' | display text`:                                                                            "text=say \"hi\" é\n",
		`filter t1 in [10, "20"] | stats count(*) as n`:                                                                  "n=2\n",
		`filter t1 not in [10] | stats count(*) as n`:                                                                    "n=2\n",
		`filter t1 != 10 | stats count(*) as n`:                                                                          "n=2\n",
		`filter t2 > 4 and (t1 < 15 or level = "ERROR") | stats count(*) as n`:                                           "n=2\n",
		`display toupper(level) as l | filter ispresent(level) | sort l | dedup l`:                                       "l=ERROR\nl=INFO\n",
		`fields user.name as who | dedup who | limit 10 | display who`:                                                   "\nwho=bob\nwho=ann\n",
		`fields 2 ^ 3 ^ 2 as a, -2 ^ 2 as b, 7 % 4 as c, (1 + 2) * 3 as d, 1 / 0 as e | limit 1 | display a, b, c, d, e`: "a=512 b=-4 c=3 d=9\n",
		`fields datefloor(@timestamp, 1h) as h | sort h asc | limit 2 | display @timestamp`:                              "@timestamp=2026-03-01 10:00:00.000\n@timestamp=2026-03-01 10:00:01.000\n",
		`fields datefloor(@timestamp, 1h) as h | sort h desc | limit 1 | display @timestamp`:                             "@timestamp=2026-03-01 10:00:05.000\n",
		`limit 1`: "@timestamp=2026-03-01 10:00:05.000 @message=ERROR [7] 10.0.0.5 failed\n",
		`sort @timestamp asc | limit 1 | display @timestamp, @logStream, @log, @ingestionTime`:                                                                           "@timestamp=2026-03-01 10:00:00.000 @logStream=stream @log=000000000000:group @ingestionTime=2026-03-01 10:00:00.005\n",
		`limit 3 | stats count(*) as n, latest(@message) as last`:                                                                                                        "n=3 last=ERROR [7] 10.0.0.5 failed\n",
		`limit 4 | filter @message like /duration/ | parse @message "user=*" as u | stats count(*) as n by u`:                                                            "u=ann n=1\nu=bob n=1\n",
		`stats count_distinct(level) as n, stddev(t1) as s, pct(t1, 50) as p, percentile(t1, 100) as q`:                                                                  "n=2 s=7.7603 p=10 q=20\n",
		`stats earliest(t1) as a, latest(t1) as b, sortsFirst(level) as c, sortsLast(level) as d`:                                                                        "a=10 b=1 c=ERROR d=INFO\n",
		`filter @message like /failed/ | parse "] * failed" as ip | display isValidIp(ip), isIpv4InSubnet(ip, "10.0.0.0/8") as a, isIpv4InSubnet(ip, "11.0.0.0/8") as b`: "isValidIp(ip)=1 a=1 b=0\n",
		"stats count(*) as `the number` by level | sort `the number` desc, level | display `the number`":                                                                 "the number=4\nthe number=1\nthe number=1\n",
		"# all\nstats count(*) # of them\n":                                           "count(*)=6\n",
		`fields jsonParse(@message) as j | filter j.user.name = "bob" | display j.t2`: "j.t2=21\n",
		`fields strlen("äb") as a, substr("hello", 1, 3) as b, replace("aXbX", "X", "-") as c, concat("a", 1, true) as d, trim("  x ") as e, ltrim("xxy", "x") as f, strcontains("abc", "b") as g | limit 1 | display a, b, c, d, e, f, g`: "a=2 b=ell c=a-b- d=a11 e=x f=y g=1\n",
		`fields coalesce(nothing, level, "none") as l | stats count(*) as n by l`:                                                                                                                  "l=ERROR n=1\nl=INFO n=1\nl=none n=4\n",
		`fields abs(-2) as a, ceil(1.2) as b, floor(1.8) as c, greatest(1, 3, 2) as d, least(4, 3) as e, sqrt(9) as f, log(1) as g | limit 1 | display a, b, c, d, e, f, g`:                        "a=2 b=2 c=1 d=3 e=3 f=3 g=0\n",
		`fields datefloor(@timestamp, 1mo) as a, dateceil(@timestamp, 1h) as b, toMillis(@timestamp) as c, fromMillis(0) as d, now() as e | sort @timestamp asc | limit 1 | display a, b, c, d, e`: "a=2026-03-01 00:00:00.000 b=2026-03-01 10:00:00.000 c=1772359200000 d=1970-01-01 00:00:00.000 e=1772359200\n",
		`fields isempty("") as a, isblank(" ") as b, isempty(nothing) as c, isempty("x") as d | limit 1 | display a, b, c, d`:                                                                      "a=1 b=1 c=1 d=0\n",
	} {
		check(t, query, want, list)
	}
}

// The query of a published measurement runs as it is printed.
func TestPublishedQuery(t *testing.T) {
	const query = `fields @timestamp, t1, t2, t2 - t1 | filter @message like /INFO/ | stats avg(t2 - t1), max(t2 - t1), min(t2 - t1), pct(t2 - t1, 90), pct(t2 - t1, 50), count(t2 - t1)`
	check(t, query, "avg(t2 - t1)=3.75 max(t2 - t1)=4.5 min(t2 - t1)=3 pct(t2 - t1, 90)=4.5 pct(t2 - t1, 50)=3 count(t2 - t1)=2\n", blocks(2, lines...))
}

// A mistake says where it stands.
func TestMistakes(t *testing.T) {
	for query, want := range map[string]string{
		``:                                         "unexpected the end of the query: expected a command||",
		`fields`:                                   "unexpected the end of the query: expected a field||",
		`fields @message | nothing x`:              "unknown command nothing|nothing|",
		`fields é, @message | filter é ~ 3`:        "unexpected character '~'|~|",
		`filter @message like /(?=x)/`:             "RE2|/(?=x)/|",
		`filter @message like /(x/`:                "missing closing|/(x/|",
		`filter @message like /x`:                  "no closing slash|/x|",
		`filter @message like "x`:                  `no closing quote|"x|`,
		`stats count(* by x`:                       "expected )|by|",
		`stats level`:                              "neither aggregated|level|",
		`stats count(*), level by user`:            "neither aggregated|level|",
		`filter avg(x) > 1`:                        "avg is an aggregate function|avg(x)|",
		`stats avg(max(x))`:                        "max is an aggregate function|max(x)|",
		`fields nofunction(x)`:                     "unknown function|nofunction|",
		`fields substr(x)`:                         "substr takes 2 to 3 arguments, not 1|substr(x)|",
		`stats count(*) by bin()`:                  "needs a period|bin()|",
		`stats count(*) by bin(5x)`:                "is no period|5x|",
		`stats pct(x, 101)`:                        "from 0 to 100|101|",
		`limit 0`:                                  "from 1 to 10000|0|",
		`limit 10001`:                              "from 1 to 10000|10001|",
		`parse @message "a * b *" as x`:            `2 wildcards, but 1 names|"a * b *"|`,
		`parse @message /x/`:                       "names no field|/x/|",
		`dedup x | stats count(*)`:                 "only limit can follow dedup|stats count(*)|",
		`fields @message | unnest x into y`:        "not offered|unnest|",
		`SOURCE logGroups() | fields @message`:     "not offered|SOURCE|",
		`fields @timestamp @message`:               "expected | or the end|@message|",
		`pattern @message`:                         "not offered|pattern|",
		`fields ` + strings.Repeat("(", 100) + "x": "nested too deeply|(|",
	} {
		_, err := ask(query, nil)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", query, err)
			continue
		}
		message, at, _ := strings.Cut(want, "|")
		at = strings.TrimSuffix(at, "|")
		if message == "expected " {
			message, at = "expected | or the end", "@message"
		}
		if got := string([]rune(query)[e.Start:e.End]); !strings.Contains(e.Message, message) || got != at {
			t.Errorf("%s: %s at %q", query, e.Message, got)
		}
	}
}
