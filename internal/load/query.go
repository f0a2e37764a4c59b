package load

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kurabe"
)

// Query asks for the load of the servers of an instance.
type Query struct {
	Instance kurabe.InstanceID // all its servers
	// Alone has Instance be the id of the one server that is meant, of a DB cluster for example.
	Alone    bool
	From, To int64 // Unix time, seconds; To is not within
	// Period is the length of the periods that are told apart, seconds, 0 for one period. The
	// first period begins at From. Seconds are known for the last three hours only: a shorter
	// one than a minute has no values before that.
	Period int64
	By     []Dimension // load is told apart by their values
	// Where keeps the sessions that have one of the values in each dimension.
	Where []Condition
	// Largest is how many groups are told, those with the most load.
	Largest int
}

// Condition is the values that a dimension may have.
type Condition struct {
	Dimension Dimension
	Values    []string
}

// Answer is load in sessions times seconds: divided by the seconds that were sampled it is the
// average number of active sessions.
type Answer struct {
	Sampled []uint64 // seconds of each period; 0: nothing is known of it
	All     []uint64 // of all groups, those that are not told included
	Groups  []Group  // the largest first
}

// Group is the load of the sessions that have the same values of Query.By.
type Group struct {
	Values []string
	Total  uint64
	Counts []uint64 // of each period
}

// periodsMax bounds the periods of an answer, pointsMax the groups times periods that a host
// tells.
const (
	periodsMax = 100_000
	pointsMax  = 1 << 19
	groupsMax  = 10_000
)

// Query answers from what this host has.
func (s *Store) Query(ctx context.Context, q Query) (Answer, error) {
	if q.Period == 0 {
		q.Period = max(1, q.To-q.From)
	}
	if q.From >= q.To || (q.To-q.From)/q.Period >= periodsMax {
		return Answer{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the time from %d to %d has no or more than %d periods of %d s", q.From, q.To, periodsMax, q.Period)
	}
	ids, err := s.of(q.Instance, q.Alone)
	if err != nil {
		return Answer{}, err
	}
	q.Largest = min(cmp.Or(q.Largest, groupsMax), groupsMax, max(1, int(pointsMax/max(1, (q.To-q.From)/q.Period))))
	if len(q.By) == 0 || q.To-q.From <= q.Period {
		return s.count(ctx, ids, q, nil)
	}
	// Only the groups that are told are counted period by period: there may be thousands.
	once := q
	once.Period = q.To - q.From
	totals, err := s.count(ctx, ids, once, nil)
	if err != nil {
		return Answer{}, err
	}
	told := map[string]bool{}
	for _, g := range totals.Groups {
		told[groupName(g.Values)] = true
	}
	return s.count(ctx, ids, q, told)
}

// count adds up all servers. told are the groups that are counted, nil: all.
func (s *Store) count(ctx context.Context, ids []kurabe.InstanceID, q Query, told map[string]bool) (Answer, error) {
	g := &grouping{Query: q, told: told, index: map[string]int{}}
	g.answer.Sampled = make([]uint64, (q.To-q.From+q.Period-1)/q.Period)
	g.answer.All = make([]uint64, len(g.answer.Sampled))
	for _, id := range ids {
		one, err := s.server(id)
		if err == nil {
			err = one.answer(ctx, g)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	// A chunk has keys of other times, too.
	g.answer.Groups = slices.DeleteFunc(g.answer.Groups, func(g Group) bool { return g.Total == 0 })
	g.answer.Largest(q.Largest)
	return g.answer, nil
}

// of are the servers of an instance that this host has, or had.
func (s *Store) of(instance kurabe.InstanceID, alone bool) (list []kurabe.InstanceID, err error) {
	folders, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	asked := func(id kurabe.InstanceID) bool { return id == instance || !alone && id.Owner() == instance }
	for _, f := range folders {
		if id := kurabe.InstanceID(f.Name()); asked(id) {
			list = append(list, id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.servers {
		if asked(id) && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list, nil
}

// Largest keeps that many groups, and sorts them.
func (a *Answer) Largest(n int) {
	slices.SortFunc(a.Groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Total, x.Total), slices.Compare(x.Values, y.Values))
	})
	a.Groups = a.Groups[:min(n, len(a.Groups))]
}

// Add adds what another host knows.
func (a *Answer) Add(b Answer) {
	if a.Sampled == nil {
		*a = b
		return
	}
	add := func(to, of []uint64) {
		for n := range min(len(to), len(of)) {
			to[n] += of[n]
		}
	}
	add(a.Sampled, b.Sampled)
	add(a.All, b.All)
	for _, g := range b.Groups {
		n := slices.IndexFunc(a.Groups, func(h Group) bool { return slices.Equal(h.Values, g.Values) })
		if n < 0 {
			a.Groups = append(a.Groups, g)
			continue
		}
		a.Groups[n].Total += g.Total
		add(a.Groups[n].Counts, g.Counts)
	}
}

// grouping adds up chunks.
type grouping struct {
	Query
	told   map[string]bool // by groupName; nil: all
	index  map[string]int  // of groups, by groupName
	answer Answer
}

// answer adds a server's load. Of an hour that is under way it reads the seconds, of earlier
// ones the minutes, or the seconds where these are asked for and still known.
func (s *server) answer(ctx context.Context, g *grouping) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds(g.From) && g.Period < 60 {
		for _, c := range append(s.recent[:], s.fine.chunk(keysMax)) {
			g.add(c, g.From, g.To)
		}
		return nil
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	fineFrom := g.To
	if s.hour != nil {
		fineFrom = min(fineFrom, s.hour.start)
	}
	for _, f := range files {
		if (g.Period < 60 || g.From%60 != 0) && strings.HasPrefix(f.Name(), "seconds-") {
			ended, _, _ := fileTime(f.Name())
			fineFrom = min(fineFrom, ended.Unix()-3600)
		}
	}
	for _, f := range files {
		ended, _, ok := fileTime(f.Name())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !ok || ended.Unix() <= g.From:
		case strings.HasPrefix(f.Name(), "seconds-") && ended.Unix() > fineFrom:
			err = s.read(f.Name(), false, func(c *chunk) { g.add(c, max(g.From, fineFrom), g.To) })
		case strings.HasPrefix(f.Name(), "minutes-"):
			err = s.read(f.Name(), false, func(c *chunk) { g.add(c, g.From, min(fineFrom, g.To)) })
		}
		if err != nil {
			return err
		}
	}
	if s.fine != nil {
		g.add(s.fine.chunk(keysMax), max(g.From, fineFrom), g.To)
	}
	return nil
}

// holds says whether all seconds from a time on are in memory. They are not while the clock has
// gone back.
func (s *server) holds(from int64) bool {
	a, b := s.recent[0], s.recent[1]
	return s.fine != nil && a != nil && from >= a.start && a.start < b.start && b.start < s.fine.start
}

// add adds the slots of a chunk that begin within a time.
func (g *grouping) add(c *chunk, from, to int64) {
	if c.start >= to || c.start+c.step*int64(len(c.slots)) <= from {
		return
	}
	groups := g.groups(c)
	for n, slot := range c.slots {
		at := c.start + int64(n)*c.step
		if at < from || at >= to || c.step > g.Period {
			continue
		}
		period := (at - g.From) / g.Period
		g.answer.Sampled[period] += slot.sampled
		for _, r := range slot.rows {
			of := groups[r.key]
			if of != skipped {
				g.answer.All[period] += r.count
			}
			if of >= 0 {
				g.answer.Groups[of].Total += r.count
				g.answer.Groups[of].Counts[period] += r.count
			}
		}
	}
}

const (
	skipped = -1 // the key does not fulfil the conditions
	untold  = -2 // it does, and its group is not told
)

func groupName(values []string) string { return strings.Join(values, "\x00") }

// groups are the numbers of the groups of a chunk's keys, or skipped or untold.
func (g *grouping) groups(c *chunk) []int {
	fulfils := make([][]bool, len(g.Where)) // each condition, by the number of a value
	for n, w := range g.Where {
		fulfils[n] = make([]bool, len(c.values))
		for v, value := range c.values {
			fulfils[n][v] = slices.Contains(w.Values, value)
		}
	}
	// Many keys of a chunk have the same values of By.
	known := map[[dimensions]uint32]int{}
	groups := make([]int, len(c.keys))
keys:
	for n, k := range c.keys {
		for i, w := range g.Where {
			if !fulfils[i][k[w.Dimension]] {
				groups[n] = skipped
				continue keys
			}
		}
		var by [dimensions]uint32
		for _, d := range g.By {
			by[d] = k[d]
		}
		at, met := known[by]
		if !met {
			at = g.group(c.key(n))
			known[by] = at
		}
		groups[n] = at
	}
	return groups
}

// group is the number of the group of a key that fulfils the conditions, or untold.
func (g *grouping) group(k Key) int {
	values := make([]string, len(g.By))
	for n, d := range g.By {
		values[n] = k[d]
	}
	name := groupName(values)
	n, known := g.index[name]
	switch {
	case known:
		return n
	case g.told != nil && !g.told[name]:
		return untold
	}
	n = len(g.answer.Groups)
	g.index[name] = n
	g.answer.Groups = append(g.answer.Groups, Group{Values: values, Counts: make([]uint64, len(g.answer.Sampled))})
	return n
}

// TextQuery asks for the statements with the ids that the servers of an instance have kept in
// the days of a time.
type TextQuery struct {
	Instance kurabe.InstanceID
	Alone    bool // as of Query
	IDs      []string
	From, To int64 // Unix time, seconds
}

// Texts returns the statements by their ids. Those that are not known are not there.
func (s *Store) Texts(_ context.Context, q TextQuery) (map[string]Text, error) {
	wanted := map[string]bool{}
	for _, id := range q.IDs {
		wanted[id] = true
	}
	servers, err := s.of(q.Instance, q.Alone)
	if err != nil {
		return nil, err
	}
	found := map[string]Text{}
	for _, id := range servers {
		one, err := s.server(id)
		if err != nil {
			return nil, err
		}
		some, err := one.find(wanted, q.From, q.To)
		if err != nil {
			return nil, err
		}
		for id, t := range some {
			found[id] = t
		}
	}
	return found, nil
}
