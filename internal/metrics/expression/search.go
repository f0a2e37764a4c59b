package expression

import (
	"slices"
	"strings"
	"unicode"
)

// maxSearchLength is CloudWatch's bound of a search query.
const maxSearchLength = 1024

// Dimension is one name and value of a metric.
type Dimension struct{ Name, Value string }

// Metric is one metric of CloudWatch: each set of dimensions is one of its own.
type Metric struct {
	Namespace, Name string
	Dimensions      []Dimension // sorted by name
}

// Search is the call of SEARCH.
type Search struct {
	Stat   string
	Period int64 // seconds; 0: not given

	// Namespace is that of the metrics, "" any one.
	Namespace  string
	dimensions []string // of the metrics, sorted; nil: any
	term       matcher  // nil: all
}

// Matches says whether the search finds a metric.
func (s *Search) Matches(m Metric) bool {
	if s.Namespace != "" && m.Namespace != s.Namespace {
		return false
	}
	if s.dimensions != nil && !slices.EqualFunc(s.dimensions, m.Dimensions, func(name string, d Dimension) bool { return name == d.Name }) {
		return false
	}
	return s.term == nil || s.term.match(m)
}

type matcher interface{ match(Metric) bool }

type (
	allOf []matcher
	anyOf []matcher
	not   struct{ matcher }
	// term looks for a text in one property, or in all of them where it names none.
	term struct {
		property, text string
		exact          bool // quoted: the whole value
	}
)

func (l allOf) match(m Metric) bool {
	return !slices.ContainsFunc(l, func(x matcher) bool { return !x.match(m) })
}
func (l anyOf) match(m Metric) bool {
	return slices.ContainsFunc(l, func(x matcher) bool { return x.match(m) })
}
func (n not) match(m Metric) bool { return !n.matcher.match(m) }

func (t term) match(m Metric) bool {
	switch t.property {
	case "MetricName":
		return t.in(m.Name)
	case "Namespace":
		return t.in(m.Namespace)
	}
	for _, d := range m.Dimensions {
		if t.property == d.Name && t.in(d.Value) || t.property == "" && (t.in(d.Name) || t.in(d.Value)) {
			return true
		}
	}
	return t.property == "" && (t.in(m.Name) || t.in(m.Namespace))
}

// in compares with a whole value, or looks for the words of the text one after the other.
func (t term) in(value string) bool {
	if t.exact {
		return value == t.text
	}
	want, have := words(t.text), words(value)
	for n := 0; n+len(want) <= len(have); n++ {
		if slices.Equal(want, have[n:n+len(want)]) {
			return true
		}
	}
	return strings.EqualFold(t.text, value)
}

// words are the parts of a name in lower case: CloudWatch divides it at what is neither letter
// nor digit and where camel case begins a word.
func words(value string) (list []string) {
	runes, begin := []rune(value), 0
	cut := func(end int) {
		if end > begin {
			list = append(list, strings.ToLower(string(runes[begin:end])))
		}
	}
	for n, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(n)
			begin = n + 1
		case n > begin && unicode.IsUpper(r) && (!unicode.IsUpper(runes[n-1]) || n+1 < len(runes) && unicode.IsLower(runes[n+1])):
			cut(n)
			begin = n
		}
	}
	cut(len(runes))
	return list
}

// parseSearch parses the query of a SEARCH: {Namespace, Dimension, …} and terms.
func parseSearch(query string) (*Search, error) {
	if len(query) > maxSearchLength {
		return nil, invalid("The query of SEARCH is longer than %d characters", maxSearchLength)
	}
	p := searchParser{parser: parser{rest: query}}
	p.skip()
	s := &Search{}
	if _, ok := p.take("{"); ok {
		if err := p.schema(s); err != nil {
			return nil, err
		}
	}
	if p.rest == "" {
		if s.Namespace == "" {
			return nil, invalid("The query of SEARCH is empty")
		}
		return s, nil
	}
	var err error
	if s.term, err = p.any(""); err == nil && p.rest != "" {
		err = p.unexpected()
	}
	return s, err
}

type searchParser struct{ parser }

func (p *searchParser) schema(s *Search) error {
	var names []string
	for {
		name, _, err := p.word()
		if err != nil {
			return err
		}
		names = append(names, name)
		if _, more := p.take(","); !more {
			break
		}
	}
	s.Namespace, s.dimensions = names[0], slices.Clip(names[1:])
	slices.Sort(s.dimensions)
	return p.close("}", nil)
}

// word is a name or text, with whether it was quoted.
func (p *searchParser) word() (word string, quoted bool, err error) {
	if c := p.peek(); c == '"' || c == '\'' {
		n, err := p.quoted()
		if err != nil {
			return "", true, err
		}
		return string(n.(text)), true, nil
	}
	n := span(p.rest, func(c byte) bool { return !strings.ContainsRune(" \t\r\n(){},=\"'", rune(c)) })
	if n == 0 {
		return "", false, p.unexpected()
	}
	word = p.rest[:n]
	p.rest = p.rest[n:]
	p.skip()
	return word, false, nil
}

// reserved takes a word if it is the next one.
func (p *searchParser) reserved(word string) bool {
	ahead := searchParser{parser: parser{rest: p.rest}}
	got, quoted, err := ahead.word()
	if err != nil || quoted || got != word {
		return false
	}
	p.rest = ahead.rest
	return true
}

func (p *searchParser) any(property string) (matcher, error) {
	var list anyOf
	for {
		m, err := p.all(property)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
		if !p.reserved("OR") {
			return list, nil
		}
	}
}

// all are terms one after the other, with AND or without.
func (p *searchParser) all(property string) (matcher, error) {
	var list allOf
	for {
		m, err := p.one(property)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
		if p.reserved("AND") {
			continue
		}
		ahead := searchParser{parser: parser{rest: p.rest}}
		if p.rest == "" || p.peek() == ')' || ahead.reserved("OR") {
			return list, nil
		}
	}
}

func (p *searchParser) one(property string) (matcher, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, invalid("The query of SEARCH is nested more than %d levels deep", maxDepth)
	}
	if p.reserved("NOT") {
		m, err := p.one(property)
		return not{m}, err
	}
	if _, ok := p.take("("); ok {
		m, err := p.any(property)
		return m, p.close(")", err)
	}
	word, quoted, err := p.word()
	if err != nil {
		return nil, err
	}
	if _, named := p.take("="); !named {
		return term{property, word, quoted}, nil
	}
	switch {
	case property != "":
		return nil, invalid("Unexpected '%.40s=' within '%.40s='", word, property)
	case strings.HasPrefix(word, ":"):
		return nil, invalid("SEARCH by '%.40s' is not supported: there is one account", word)
	}
	return p.one(word)
}
