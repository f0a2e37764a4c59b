package study

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds of a definition.
const (
	QuestionMax  = 500 // bytes
	VariantsMax  = 100
	WorkloadsMax = 100
	BlocksMax    = 1000
	MetricsMax   = 50
	StatementMax = 100 // of one list of SQL
	MeasureMin   = time.Second
	PhaseMax     = 24 * time.Hour
)

// DirectionBlocks are the fewest that say anything; VerdictBlocks the fewest for which
// an interval of 95 % exists: the smallest two-sided p of the signed ranks is 2/2^n, which
// is 6.25 % for five pairs and 3.1 % for six.
const (
	DirectionBlocks = 3
	VerdictBlocks   = 6
)

// studyName is part of file names, tags and names of databases.
var studyName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// cellName is a variant's or a workload's.
var cellName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,59}$`)

var engineNames = []string{Postgres, MariaDB, MySQL}

// checker finds what is wrong with a study that could be read.
type checker struct {
	Options
	study  *Study
	refuse func(path, format string, args ...any)
	found  int // problems
}

func (c *checker) check() {
	s, refuse := c.study, c.refuse
	c.refuse = func(path, format string, args ...any) {
		c.found++
		refuse(path, format, args...)
	}
	if !studyName.MatchString(s.Name) {
		c.refuse("name", "%q must be of small letters, digits and -, beginning with a letter, 40 at the most", brief(s.Name))
	}
	if s.Question == "" || len(s.Question) > QuestionMax {
		c.refuse("question", "is one sentence, of 1 to %d bytes, not %d", QuestionMax, len(s.Question))
	}
	c.engines("engines", s.Engines, engineNames)
	if len(s.Engines) == 0 {
		c.refuse("engines", "names no engine; choose from %s", strings.Join(engineNames, ", "))
	}
	if len(s.Variants) == 0 || len(s.Variants) > VariantsMax {
		c.refuse("variants", "has %d variants; 1 to %d are possible", len(s.Variants), VariantsMax)
	}
	if len(s.Workloads) == 0 || len(s.Workloads) > WorkloadsMax {
		c.refuse("workloads", "has %d workloads; 1 to %d are possible", len(s.Workloads), WorkloadsMax)
	}
	c.variants("variants", s.Variants)
	c.workloads("workloads", s.Workloads)
	c.baseline()
	c.metrics()
	c.plan("plan", s.Plan)
	c.everyEngine()
	c.adjustment("quick", s.Quick)
	c.adjustment("as_published", s.AsPublished)
	c.published()
}

func (c *checker) variants(path string, list []Variant) {
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if first := slices.IndexFunc(list, func(o Variant) bool { return o.Name == v.Name }); first < i && v.Name != "" {
			c.refuse(at+".name", "%q is the name of %s[%d] already; give each its own", v.Name, path, first)
		}
		c.variant(at, v)
	}
}

func (c *checker) workloads(path string, list []Workload) {
	for i, w := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if first := slices.IndexFunc(list, func(o Workload) bool { return o.Name == w.Name }); first < i && w.Name != "" {
			c.refuse(at+".name", "%q is the name of %s[%d] already; give each its own", w.Name, path, first)
		}
		c.workload(at, w)
	}
}

// engines checks a list of engines against those that may stand in it.
func (c *checker) engines(path string, list, of []string) {
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case !slices.Contains(engineNames, e):
			c.refuse(at, "%q is none of %s", brief(e), strings.Join(engineNames, ", "))
		case !slices.Contains(of, e):
			c.refuse(at, "%q is not among the study's engines, %s; add it there or remove it here", e, strings.Join(of, ", "))
		case slices.Index(list, e) < i:
			c.refuse(at, "%q is here twice; remove one", e)
		}
	}
}

// oneOf refuses a word that is not in a closed list.
func (c *checker) oneOf(path, word string, of []string) bool {
	if slices.Contains(of, word) {
		return true
	}
	c.refuse(path, "%q is none of %s", brief(word), strings.Join(of, ", "))
	return false
}

// within refuses a number outside its bounds.
func (c *checker) within(path string, n, low, high int) {
	if n < low || n > high {
		c.refuse(path, "%d is outside of %d to %d", n, low, high)
	}
}

func (c *checker) baseline() {
	i := slices.IndexFunc(c.study.Variants, func(v Variant) bool { return v.Name == c.study.Baseline })
	switch {
	case i < 0:
		names := make([]string, 0, len(c.study.Variants))
		for _, v := range c.study.Variants {
			names = append(names, v.Name)
		}
		c.refuse("baseline", "%q is none of the variants; name one of %s", brief(c.study.Baseline), brief(strings.Join(names, ", ")))
	case len(c.study.Variants[i].Engines) > 0 && len(c.study.Variants[i].Engines) < len(c.study.Engines):
		c.refuse(fmt.Sprintf("variants[%d].engines", i), "the baseline is compared with on every engine of the study; remove the key")
	}
}

func (c *checker) metrics() {
	p := c.study.Primary
	c.primary("primary", p)
	if len(c.study.Metrics) > MetricsMax {
		c.refuse("metrics", "has %d metrics; %d are possible", len(c.study.Metrics), MetricsMax)
	}
	for i, m := range c.study.Metrics {
		at := fmt.Sprintf("metrics[%d]", i)
		if m == p.Metric || slices.Index(c.study.Metrics, m) < i {
			c.refuse(at, "%q is here twice, or the primary one; remove it", brief(m))
		}
		c.metric(at, m)
	}
}

// primary checks what decides, of the study or of a workload.
func (c *checker) primary(path string, p Primary) {
	c.metric(path+".metric", p.Metric)
	if !(p.Margin > 0 && p.Margin < 1) {
		c.refuse(path+".margin", "%v is outside of 0 to 1; it is a share, 0.03 for three percent", p.Margin)
	}
}

// metric checks a name that a verdict or an estimate is to be made of. One of a phase
// needs a change, or no trial would have it.
func (c *checker) metric(path, name string) {
	if name == "" {
		c.refuse(path, "is empty; name a metric, such as tps or resp_p95")
		return
	}
	if c.CheckMetric != nil {
		if err := c.CheckMetric(name); err != nil {
			c.refuse(path, "%v", err)
			return
		}
	}
	if strings.Contains(name, "@") && !HasChanges(c.study) {
		c.refuse(path, "%q is of a phase, and no variant makes a change; remove what follows @, or give the variants a change", brief(name))
	}
}

func (c *checker) plan(path string, p Plan) {
	c.within(path+".blocks_min", p.BlocksMin, 1, BlocksMax)
	c.within(path+".blocks_max", p.BlocksMax, 1, BlocksMax)
	if p.BlocksMin > p.BlocksMax {
		c.refuse(path+".blocks_min", "%d is more than blocks_max, %d; make it less or equal", p.BlocksMin, p.BlocksMax)
	}
	if !(p.TargetHalfwidth >= 0 && p.TargetHalfwidth < 1) {
		c.refuse(path+".target_halfwidth", "%v is outside of 0 to 1; it is a share, 0.02 for ±2 %%, and 0 measures blocks_max", p.TargetHalfwidth)
	}
	c.duration(path+".warm", p.Warm, 0)
	c.duration(path+".warm_max", p.WarmMax, 0)
	if p.Warm > p.WarmMax {
		c.refuse(path+".warm_max", "%v is less than warm, %v; make it more or equal", p.WarmMax, p.Warm)
	}
	c.duration(path+".measure", p.Measure, MeasureMin)
	if !HasChanges(c.study) {
		if p.After != 0 {
			c.refuse(path+".after", "is how long the load goes on after a change, and no variant makes one; remove the key")
		}
		if p.DuringMin != 0 {
			c.refuse(path+".during_min", "is how long a change is watched at the least, and no variant makes one; remove the key")
		}
		return
	}
	c.duration(path+".after", p.After, MeasureMin)
	c.duration(path+".during_min", p.DuringMin, MeasureMin)
}

func (c *checker) duration(path string, d Duration, low time.Duration) {
	if d < Duration(low) || d > Duration(PhaseMax) {
		c.refuse(path, "%v is outside of %v to %v", d, Duration(low), Duration(PhaseMax))
	}
}

// everyEngine refuses a study that has nothing to measure on one of its engines.
func (c *checker) everyEngine() {
	if len(c.study.Workloads) == 0 {
		return
	}
	for i, e := range c.study.Engines {
		has := slices.ContainsFunc(c.study.Workloads, func(w Workload) bool { return covers(w.Engines, e) })
		if !has {
			c.refuse(fmt.Sprintf("engines[%d]", i), "no workload is for %s; add one, or remove the engine", brief(e))
		}
	}
}

// covers says whether a limit to engines, none when empty, lets one pass.
func covers(engines []string, e string) bool {
	return len(engines) == 0 || slices.Contains(engines, e)
}

// enginesOf are the study's that a limit leaves.
func (c *checker) enginesOf(limit []string) []string {
	return slices.DeleteFunc(slices.Clone(c.study.Engines), func(e string) bool { return !covers(limit, e) })
}

// HasChanges says whether the trials of a study have the phases idle, during and after.
func HasChanges(s *Study) bool {
	return slices.ContainsFunc(s.Variants, func(v Variant) bool { return len(v.Change) > 0 })
}
