package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"kurabe"
)

// countedMax bounds the statements of a minute that are told apart, those with the longest time.
const countedMax = 100

// Counted is what a server has counted of its statements in the time before At.
type Counted struct {
	At         time.Time
	For        time.Duration
	Statements []kurabe.StatementCounts
}

// AddCounted takes in what a server has counted. Of the statements beyond countedMax the sum stays.
func (s *Store) AddCounted(id kurabe.InstanceID, c Counted) error {
	one, err := s.server(id)
	if err != nil {
		return err
	}
	list := slices.SortedFunc(slices.Values(c.Statements), func(x, y kurabe.StatementCounts) int {
		return cmp.Compare(y.Counts[kurabe.StatementMicroseconds], x.Counts[kurabe.StatementMicroseconds])
	})
	if len(list) > countedMax {
		rest := kurabe.StatementCounts{}
		for _, more := range list[countedMax:] {
			for n, count := range more.Counts {
				rest.Counts[n] += count
			}
		}
		list = append(list[:countedMax], rest)
	}
	c.Statements = list
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.append(name(countForm, c.At.Unix()), frame(c.encode()))
}

// encode writes the end and the length of the time in milliseconds, then the counters of each
// statement after its number.
func (c Counted) encode() []byte {
	b := binary.AppendVarint([]byte{version}, c.At.UnixMilli())
	b = binary.AppendUvarint(b, uint64(c.For.Milliseconds()))
	b = binary.AppendUvarint(b, uint64(kurabe.StatementCounters))
	b = binary.AppendUvarint(b, uint64(len(c.Statements)))
	for _, s := range c.Statements {
		b = append(binary.AppendUvarint(b, uint64(len(s.NativeID))), s.NativeID...)
		for _, count := range s.Counts {
			b = binary.AppendUvarint(b, count)
		}
	}
	return b
}

// decodeCounted reads what encode wrote, of an earlier or later version too.
func decodeCounted(raw []byte) (c Counted, err error) {
	if len(raw) == 0 || raw[0] != version {
		return c, errChunk
	}
	d := &decoder{raw: raw[1:]}
	c.At = time.UnixMilli(d.signed())
	c.For = time.Duration(d.number(uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
	width := d.number(64)
	c.Statements = make([]kurabe.StatementCounts, d.number(10*countedMax))
	for n := range c.Statements {
		c.Statements[n].NativeID = d.text()
		for k := range width {
			if count := d.number(1 << 63); k < uint64(kurabe.StatementCounters) {
				c.Statements[n].Counts[k] = count
			}
		}
	}
	return c, d.err
}

// CountQuery asks for what the servers of an instance have counted of statements.
type CountQuery struct {
	Instance kurabe.InstanceID
	Alone    bool     // as of Query
	IDs      []string // of statements without literals
	Counters []kurabe.StatementCounter
	From, To int64 // Unix time, seconds; To is not within
	Period   int64 // seconds; 0 for one period
}

// Counts is what was counted in each period. A server is asked once a minute: what it counted
// counts for each part of that minute alike.
type Counts struct {
	Seconds []float64              // of each period for which statements were counted
	Of      map[string][][]float64 // by ID, in the order of CountQuery.Counters, of each period
}

// Add adds what another host knows.
func (c *Counts) Add(b Counts) {
	add := func(to *[]float64, of []float64) {
		if *to == nil {
			*to = make([]float64, len(of))
		}
		for n := range min(len(*to), len(of)) {
			(*to)[n] += of[n]
		}
	}
	add(&c.Seconds, b.Seconds)
	for id, lists := range b.Of {
		if c.Of == nil {
			c.Of = map[string][][]float64{}
		}
		if c.Of[id] == nil {
			c.Of[id] = make([][]float64, len(lists))
		}
		for n := range min(len(lists), len(c.Of[id])) {
			add(&c.Of[id][n], lists[n])
		}
	}
}

// Counts answers from what this host has. Statements of which nothing was counted are not there.
func (s *Store) Counts(ctx context.Context, q CountQuery) (Counts, error) {
	if q.Period == 0 {
		q.Period = max(1, q.To-q.From)
	}
	if q.From >= q.To || (q.To-q.From)/q.Period >= periodsMax {
		return Counts{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the time from %d to %d has no or more than %d periods of %d s", q.From, q.To, periodsMax, q.Period)
	}
	ids, err := s.of(q.Instance, q.Alone)
	if err != nil {
		return Counts{}, err
	}
	answer := Counts{Seconds: make([]float64, (q.To-q.From+q.Period-1)/q.Period), Of: map[string][][]float64{}}
	for _, id := range ids {
		one, err := s.server(id)
		if err == nil {
			err = one.counts(ctx, q, &answer)
		}
		if err != nil {
			return Counts{}, err
		}
	}
	return answer, nil
}

// counts adds what a server has counted.
func (s *server) counts(ctx context.Context, q CountQuery, answer *Counts) error {
	asked := map[string]bool{}
	for _, id := range q.IDs {
		asked[id] = id != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := s.files()
	if err != nil {
		return err
	}
	of := map[string][]string{} // IDs by the server's number
	for _, f := range files {
		if !within(f.Name(), textForm, q.From, q.To) {
			continue
		}
		err := s.readTexts(f.Name(), func(t Text) {
			if asked[t.TokenizedID] && t.NativeID != "" && !slices.Contains(of[t.NativeID], t.TokenizedID) {
				of[t.NativeID] = append(of[t.NativeID], t.TokenizedID)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, f := range files {
		// A file has what was counted until its day, too.
		if ctx.Err() != nil || !within(f.Name(), countForm, q.From, q.To+86400) {
			continue
		}
		err := s.frames(f.Name(), false, func(body []byte) {
			if c, bad := decodeCounted(body); bad == nil {
				c.addTo(answer, q, of)
			}
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// addTo adds to each period its part.
func (c Counted) addTo(answer *Counts, q CountQuery, of map[string][]string) {
	length, end := c.For.Seconds(), float64(c.At.UnixMilli())/1000
	begin := end - length
	if length <= 0 || end <= float64(q.From) || begin >= float64(q.To) {
		return
	}
	at := func(n int) float64 { return float64(min(q.To, q.From+int64(n)*q.Period)) }
	first := max(0, int((begin-float64(q.From))/float64(q.Period)))
	for n := first; n < len(answer.Seconds) && at(n) < end; n++ {
		part := min(end, at(n+1)) - max(begin, at(n))
		if part <= 0 {
			continue
		}
		answer.Seconds[n] += part
		for _, s := range c.Statements {
			for _, id := range of[s.NativeID] {
				answer.add(id, n, s.Counts, q.Counters, part/length)
			}
		}
	}
}

// add adds a part of what was counted of a statement to a period.
func (c *Counts) add(id string, period int, counts [kurabe.StatementCounters]uint64, which []kurabe.StatementCounter, part float64) {
	if c.Of[id] == nil {
		c.Of[id] = make([][]float64, len(which))
		for n := range which {
			c.Of[id][n] = make([]float64, len(c.Seconds))
		}
	}
	for n, counter := range which {
		if counter >= 0 && counter < kurabe.StatementCounters {
			c.Of[id][n][period] += float64(counts[counter]) * part
		}
	}
}

// within says whether a file is of a day of a time.
func within(file, form string, from, to int64) bool {
	return strings.HasPrefix(file, form[:strings.IndexByte(form, '-')+1]) && file >= name(form, from) && file <= name(form, to)
}
