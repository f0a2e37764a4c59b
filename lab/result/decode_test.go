package result

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

// change replaces in a text what must be there.
func change(t testing.TB, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%q is not in %s", from, text)
	}
	return strings.Replace(text, from, to, 1)
}

// refusal is a file and what its error says.
type refusal struct{ text, want string }

func refused(t *testing.T, cases map[string]refusal) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := Decode(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
			if f != nil {
				t.Error("there is a file and an error")
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	start, trial := lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(1, "off", 5000))
	event := lineOf(t, KindEvent, Event{Block: 1, Variant: "off", Workload: "w", AtMs: 5, Kind: "checkpoint"})
	studyWith := func(from, to string) string { return chain(t, change(t, start, from, to)) }
	good := chain(t, start, trial, trial)
	refused(t, map[string]refusal{
		"empty":                    {"", "no study in the file"},
		"no JSON":                  {"hello\n", "line 1: no JSON of this format: invalid character 'h'"},
		"an array":                 {"[]\n", "line 1: the line is a JSON array, not an object"},
		"null":                     {"null\n", "line 1: t: the kind of the record is not there"},
		"an empty line":            {chain(t, start) + "\n", "line 2: no JSON"},
		"two values in a line":     {chain(t, start+"{}"), "line 1: no JSON"},
		"a trial before the study": {chain(t, trial), "line 1: trial: it stands before the study"},
		"two studies":              {chain(t, start, start), "line 2: study: a file has one study"},
		"unknown kind":             {chain(t, start, `{"t":"guess"}`), `line 2: t: "guess" is no kind of record`},
		"no kind":                  {chain(t, start, `{"x":1}`), "line 2: t: the kind of the record is not there"},
		"unknown version":          {studyWith("kurabe-lab/1", "kurabe-lab/2"), `line 1: study: format: "kurabe-lab/2" is not "kurabe-lab/1", the only one that this version reads`},
		"unknown version, fields":  {studyWith(`"kurabe-lab/1"`, `"kurabe-lab/2","new":1`), `format: "kurabe-lab/2" is not`},
		"a changed line":           {change(t, good, "5000", "5001"), "line 3: trial: prev: the chain is broken"},
		"a removed line":           {strings.Join(append(strings.SplitAfter(good, "\n")[:1], strings.SplitAfter(good, "\n")[2]), ""), "line 2: trial: prev: the chain is broken"},
		"no prev":                  {strings.Replace(good, `"prev":"`+hash([]byte(strings.Split(good, "\n")[1]))+`",`, "", 1), "line 3: trial: prev: the chain is broken"},
		"a study with a prev":      {change(t, good, `"prev":""`, `"prev":"ab"`), "line 1: study: prev: the chain is broken"},
		"event of no cell":         {chain(t, start, change(t, event, `"off"`, `"none"`)), `line 2: event: variant: the study has no "none"`},
		"event before the trial":   {chain(t, start, change(t, event, `"at_ms":5`, `"at_ms":-5`)), "line 2: event: at_ms: -5 is negative"},
		"event of no kind":         {chain(t, start, change(t, event, "checkpoint", "")), "line 2: event: kind: it is not there"},
		"settings of no variant":   {chain(t, start, `{"t":"settings","variant":"x","values":{}}`), `line 2: settings: variant: the study has no "x"`},
		"end without a reason":     {chain(t, start, `{"t":"end","at":"2026-11-21T09:00:00Z","reason":""}`), "line 2: end: reason: it is not there"},
		"end at no time":           {chain(t, start, `{"t":"end","at":"noon","reason":"x"}`), "line 2: end: no JSON of this format"},
		"id in capitals":           {studyWith("small-1", "Small"), `line 1: study: id: "Small" is not lower case letters`},
		"no engine":                {studyWith(`"engine":"postgres"`, `"engine":""`), "line 1: study: engine: it is not there"},
		"no margin":                {studyWith(`"margin":0.03`, `"margin":0`), "line 1: study: definition.primary.margin: 0 is not between 0 and 1"},
		"unknown metric":           {studyWith(`"metric":"tps"`, `"metric":"rps"`), `line 1: study: definition.primary.metric: "rps" is no metric`},
		"unknown other metric":     {studyWith(`"resp_p95"`, `"resp_p94"`), `line 1: study: definition.metrics[0]: "resp_p94" is no metric`},
		"unknown baseline":         {studyWith(`"baseline":"off"`, `"baseline":"of"`), `line 1: study: definition.baseline: "of" is none of the variants`},
		"a variant twice":          {studyWith(`"name":"on"`, `"name":"off"`), `line 1: study: definition.variants[1].name: "off" is there twice`},
		"damage in the middle":     {strings.Replace(good, "5000", "50\x000", 1), "line 2: it is damaged, and others follow"},
		"a line without an end":    {chain(t, start) + strings.Repeat("x", maxLineBytes+1), "line 2: it has more than 4194304 bytes"},
	})
}

func TestDecodeRefusesTrial(t *testing.T) {
	start, trial := lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(1, "off", 5000))
	with := func(from, to string) string { return chain(t, start, change(t, trial, from, to)) }
	refused(t, map[string]refusal{
		"unknown field":           {with(`"seed"`, `"sead"`), `line 2: trial: no JSON of this format: unknown field "sead"`},
		"text for a number":       {with(`"block":1`, `"block":"1"`), "line 2: trial: block: a JSON string does not fit"},
		"too large for a number":  {with(`"seconds":10`, `"seconds":1e999`), "line 2: trial: phases.load.seconds: a JSON number 1e999 does not fit"},
		"NaN":                     {with(`"seconds":10`, `"seconds":NaN`), "line 2: no JSON of this format: invalid character 'N'"},
		"unknown variant":         {with(`"variant":"off"`, `"variant":"of"`), `line 2: trial: variant: the study has no "of"`},
		"unknown workload":        {with(`"workload":"w"`, `"workload":"x"`), `line 2: trial: workload: the study has no "x"`},
		"unknown status":          {with(`"status":"ok"`, `"status":"fine"`), `line 2: trial: status: "fine" is none of`},
		"failed without a reason": {with(`"status":"ok"`, `"status":"failed"`), "line 2: trial: reason: a trial that does not count needs one"},
		"block zero":              {with(`"block":1`, `"block":0`), "line 2: trial: block: 0 is not within 1 and 500"},
		"a negative position":     {with(`"position":0`, `"position":-1`), "line 2: trial: position: -1 is negative"},
		"a negative count":        {with(`"transactions":5000`, `"transactions":-5`), "line 2: trial: phases[0].load.transactions: -5 is negative"},
		"a negative time":         {with(`"seconds":10`, `"seconds":-0.5`), "line 2: trial: phases[0].load.seconds: -0.5 is negative"},
		"a negative phase":        {with(`"ms":10000`, `"ms":-1`), "line 2: trial: phases[0].ms: -1 is negative"},
		"a negative probe":        {with(`"ms":10000`, `"ms":1,"probes":{"cpu_s":-2}`), "phases[0].probes.cpu_s: -2 is negative"},
		"a negative wait":         {with(`"ms":10000`, `"ms":1,"waits":{"io":-2}`), "phases[0].waits.io: -2 is negative"},
		"a negative bin":          {with(`"seconds":10`, `"seconds":10,"bins":[1,-2]`), "phases[0].load.bins[1]: -2 is negative"},
		"bins that do not match":  {with(`"seconds":10`, `"seconds":10,"bins":[1,2],"bins_max":[1]`), "phases[0].load.bins_max: 1 for 2 bins"},
		"a negative slowest":      {with(`"seconds":10`, `"seconds":10,"bins":[1],"bins_max":[-1]`), "phases[0].load.bins_max[0]: -1 is negative"},
		"more skipped than due":   {with(`"seconds":10`, `"seconds":10,"offered":3,"skipped":4`), "phases[0].load.skipped: 4 is not within"},
		"a negative error":        {with(`"seconds":10`, `"seconds":10,"errors":{"40001":-1}`), "phases[0].load.errors.40001: -1 is negative"},
		"a negative summary":      {with(`"seconds":10`, `"seconds":10,"summary":{"avg":-1}`), "phases[0].load.summary.avg: -1 is negative"},
		"a bad histogram":         {with(`"seconds":10`, `"seconds":10,"service":"AAAA"`), "phases[0].load.service: decode histogram"},
		"a bad statement":         {with(`"seconds":10`, `"seconds":10,"statements":{"01 X":"AAAA"}`), "phases[0].load.statements.01 X: decode histogram"},
		"a negative canary":       {with(`"status"`, `"canary":{"cpu":[1,-1]},"status"`), "canary.cpu[1]: -1 is negative"},
		"a negative change":       {with(`"status"`, `"change_ms":-1,"status"`), "change_ms: -1 is negative"},
		"an unknown phase":        {with(`"name":"measure"`, `"name":"measuring"`), `phases[0].name: "measuring" is none of`},
		"a phase twice":           {with(`"phases":[{`, `"phases":[{"name":"measure","ms":1,"start_ms":0},{`), `phases[1].name: "measure" is there twice`},
		"ok without a load":       {with(`"name":"measure"`, `"name":"warm"`), "trial: phases: a trial that counts has the load"},
	})
}

func TestDecodeTwinNeedsNoDefinition(t *testing.T) {
	s := smallStudy()
	s.Definition.Variants = s.Definition.Variants[:2]
	text := chain(t, lineOf(t, KindStudy, s), lineOf(t, KindTrial, okTrial(1, "off′", 10)))
	if f, err := Decode(strings.NewReader(text)); err != nil || len(f.Trials) != 1 {
		t.Errorf("%v", err)
	}
}

// A reader of another language may write the fields in any order.
func TestDecodeInAnyOrderOfFields(t *testing.T) {
	a := chain(t, lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(2, "on", 77)))
	lines := []string{}
	prev := ""
	for line := range strings.Lines(a) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		m["prev"] = prev
		sorted, err := json.Marshal(m) // keys in alphabetical order
		if err != nil {
			t.Fatal(err)
		}
		prev = hash(sorted)
		lines = append(lines, string(sorted)+"\n")
	}
	b := strings.Join(lines, "")
	if a == b {
		t.Fatal("the order is the same")
	}
	f, err := Decode(strings.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	g, err := Decode(strings.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if x, y := encoded(t, f), encoded(t, g); x != y {
		t.Errorf("%s\nis not\n%s", x, y)
	}
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file that is cut anywhere reads as its whole lines.
func TestDecodeTornAnywhere(t *testing.T) {
	whole := chain(t, lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(1, "off", 9)), lineOf(t, KindTrial, okTrial(1, "on", 8)))
	second := strings.Index(whole, "\n") + 1
	third := second + strings.Index(whole[second:], "\n") + 1
	for cut := second; cut < len(whole); cut++ {
		f, err := Decode(iotest.OneByteReader(strings.NewReader(whole[:cut])))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		trials, torn := 0, cut-second
		if cut >= third-1 { // the end of a line may be missing
			trials, torn = 1, max(cut-third, 0)
		}
		if cut == len(whole)-1 {
			trials, torn = 2, 0
		}
		if len(f.Trials) != trials || f.Torn != torn {
			t.Fatalf("cut at %d: %d trials and %d bytes torn, want %d and %d", cut, len(f.Trials), f.Torn, trials, torn)
		}
	}
	for cut := range second - 1 {
		if _, err := Decode(strings.NewReader(whole[:cut])); err == nil {
			t.Fatalf("cut at %d: half a study was accepted", cut)
		}
	}
}

func TestDecodeTornToZeros(t *testing.T) {
	text := chain(t, lineOf(t, KindStudy, smallStudy()), lineOf(t, KindTrial, okTrial(1, "off", 9)))
	for name, tail := range map[string]string{
		"zeros":            strings.Repeat("\x00", 4096),
		"half zeros":       `{"t":"trial","pr` + strings.Repeat("\x00", 100),
		"zeros and an end": `{"t":"trial"` + strings.Repeat("\x00", 100) + "}\n",
	} {
		f, err := Decode(strings.NewReader(text + tail))
		if err != nil || len(f.Trials) != 1 || f.Torn != len(tail) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rechained gives every line of data that is a JSON object the prev that it must have,
// or fuzzing would never come further than the chain.
func rechained(data []byte) []byte {
	var out []byte
	prev := ""
	for line := range bytes.Lines(data) {
		var m map[string]json.RawMessage
		if json.Unmarshal(line, &m) == nil && m != nil {
			m["prev"] = json.RawMessage(`"` + prev + `"`)
			if again, err := json.Marshal(m); err == nil {
				line = append(again, '\n')
			}
		}
		prev = hash(bytes.TrimSuffix(line, []byte("\n")))
		out = append(out, line...)
	}
	return out
}

// What decodes can be written again and says the same.
func FuzzDecode(f *testing.F) {
	trial := okTrial(1, "off", 5000)
	text, err := EncodeHistogram(filled(f, map[int64]int64{900: 3}))
	if err != nil {
		f.Fatal(err)
	}
	load := trial.Phases[0].Load
	load.Service, load.Bins, load.BinsMax = text, []int64{3, 0}, []float64{1.5, 0}
	load.Errors, load.Summary, load.Offered, load.Skipped = map[string]int64{"40001": 1}, map[string]float64{"avg": 2}, 9, 1
	trial.Canary = map[string][2]float64{"cpu": {1, 2}}
	trial.Phases[0].Probes, trial.Phases[0].Waits = map[string]float64{"cpu_s": 2}, map[string]int{"io": 1}
	start := lineOf(f, KindStudy, smallStudy())
	for _, lines := range [][]string{
		{start},
		{start, lineOf(f, KindTrial, trial), lineOf(f, KindTrial, okTrial(1, "on", 400)), lineOf(f, KindTrial, okTrial(1, "off′", 500))},
		{start, lineOf(f, KindEnv, Env{Host: map[string]string{"cpu": "x"}}), lineOf(f, KindSettings, Settings{Variant: "on"}), lineOf(f, KindEnd, End{Reason: "precise"})},
		{start, lineOf(f, KindEvent, Event{Block: 1, Variant: "on", Workload: "w", Kind: "checkpoint"})},
		{`{"t":"study","format":"kurabe-lab/1"}`},
	} {
		f.Add([]byte(strings.Join(lines, "\n") + "\n"))
		f.Add([]byte(chain(f, lines...)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, rechained(data)} {
			file, err := Decode(bytes.NewReader(data))
			if err != nil {
				continue
			}
			writesBack(t, file)
			if _, err := Estimates(file, 0.95); err != nil {
				t.Fatalf("a file that was accepted has no estimates: %v", err)
			}
		}
	})
}

func writesBack(t *testing.T, file *File) {
	lines := []string{lineOf(t, KindStudy, file.Study)}
	for _, trial := range file.Trials {
		lines = append(lines, lineOf(t, KindTrial, trial))
	}
	back, err := Decode(strings.NewReader(chain(t, lines...)))
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	if a, b := encoded(t, file.Trials), encoded(t, back.Trials); a != b {
		t.Fatalf("%s became %s", a, b)
	}
}
