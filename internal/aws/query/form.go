package query

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// Bounds of one request. The largest real one is PutMetricData: a thousand data with a dozen
// members each, and two more for each dimension.
const (
	MaxKeys      = 1 << 15 // parameters in a request
	MaxKeyBytes  = 512     // of one name
	MaxDepth     = 12      // parts of a name; the model's deepest has 8
	MaxListItems = 1000    // elements of one list
)

// Form is a request's parameters as the tree that their dotted names spell.
type Form struct {
	root node
}

// node is one dotted prefix. A node with a value is a parameter of the request.
type node struct {
	key      string // the whole name, for messages
	value    string
	hasValue bool
	consumed bool
	children map[string]*node
}

// Parse reads bodies and URL queries ("a=b&c=d"), together one request. A name
// that appears twice is refused, for one of its values would be dropped.
func Parse(texts ...string) (*Form, error) {
	f, keys := &Form{}, 0
	for _, text := range texts {
		for pair := range strings.SplitSeq(text, "&") {
			if pair == "" {
				continue
			}
			if keys++; keys > MaxKeys {
				return nil, malformed("The request has more than %d parameters.", MaxKeys)
			}
			if err := f.add(pair); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func (f *Form) add(pair string) error {
	rawKey, rawValue, _ := strings.Cut(pair, "=")
	key, err := url.QueryUnescape(rawKey)
	if err != nil || key == "" || len(key) > MaxKeyBytes || !shape.IsText(key) {
		return malformed("A parameter name of the request is not well formed.")
	}
	value, err := url.QueryUnescape(rawValue)
	if err != nil || !shape.IsText(value) {
		return malformed("The value of parameter %s is not well formed text.", key)
	}
	if strings.Count(key, ".") >= MaxDepth {
		return malformed("The parameter name %s is nested too deeply.", key)
	}
	at, end := &f.root, -1
	for segment := range strings.SplitSeq(key, ".") {
		if segment == "" {
			return malformed("The parameter name %s is not well formed.", key)
		}
		end += 1 + len(segment)
		at = at.child(segment, key[:end])
	}
	if at.hasValue {
		return malformed("The parameter %s is given more than once.", key)
	}
	at.value, at.hasValue = value, true
	return nil
}

func (n *node) child(segment, key string) *node {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	c := n.children[segment]
	if c == nil {
		c = &node{key: key}
		n.children[segment] = c
	}
	return c
}

// Take returns a parameter at the top of the form and counts it as consumed.
func (f *Form) Take(name string) string {
	n := f.root.children[name]
	if n == nil || !n.hasValue {
		return ""
	}
	n.consumed = true
	return n.value
}

// TakePrefix counts every parameter at the top of the form whose name begins so
// as consumed. The dispatcher uses it for what signing adds to a presigned URL.
func (f *Form) TakePrefix(prefix string) {
	for name, n := range f.root.children {
		if strings.HasPrefix(name, prefix) {
			n.consumed = true
		}
	}
}

// Unconsumed lists, in order, the parameters that nothing has read.
func (f *Form) Unconsumed() []string {
	var out []string
	var walk func(n *node)
	walk = func(n *node) {
		if n.hasValue && !n.consumed {
			out = append(out, n.key)
		}
		for _, name := range slices.Sorted(maps.Keys(n.children)) {
			walk(n.children[name])
		}
	}
	walk(&f.root)
	return out
}

func malformed(format string, args ...any) *fault.Fault {
	return fault.New(400, "MalformedInput", format, args...)
}
