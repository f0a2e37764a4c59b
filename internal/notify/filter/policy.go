package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// SNS's bounds of a policy.
const (
	keysMax         = 5   // that are compared
	combinationsMax = 150 // of their values; deeper ones count as many times as they are deep
	bytesMax        = 256 << 10
	depthMax        = 10 // of keys in keys, ours
	orMax           = 10 // alternatives of an $or, ours
	numberMax       = 1e9
)

// Policy is a parsed filter policy. The zero one wants everything.
type Policy struct {
	all []clause // all of them have to match
}

// clause is one key with its conditions, the keys below it, or alternatives.
type clause struct {
	key        string
	conditions []condition // one has to match
	below      []clause    // all have to match, in the value of key
	either     [][]clause  // one has to match; there is no key then
}

// condition says whether a value matches; value is nil where there is none.
type condition func(value *value) bool

// value is a scalar of a notification: a string, a float64, a bool or nil for null.
type value struct{ of any }

// Parse reads a policy. nested says that keys may hold keys, as in bodies. Its errors are for
// users.
func Parse(text string, nested bool) (Policy, error) {
	if len(text) > bytesMax {
		return Policy{}, fmt.Errorf("it has more than %d bytes", bytesMax)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return Policy{}, errors.New("it is no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("something follows the JSON object")
	}
	p := parser{nested: nested, keys: map[string]bool{}}
	all, combinations, err := p.clauses(object, "", 1)
	switch {
	case err != nil:
		return Policy{}, err
	case len(p.keys) > keysMax:
		return Policy{}, fmt.Errorf("it has more than %d keys", keysMax)
	case combinations > combinationsMax:
		return Policy{}, fmt.Errorf("it is too complex: its values make more than %d combinations", combinationsMax)
	}
	return Policy{all}, nil
}

type parser struct {
	nested bool
	keys   map[string]bool
}

// clauses reads an object, and counts the combinations of its values.
func (p *parser) clauses(object map[string]any, above string, depth int) (all []clause, combinations int, err error) {
	if depth > depthMax {
		return nil, 0, fmt.Errorf("its keys are more than %d deep", depthMax)
	}
	combinations = 1
	for _, key := range slices.Sorted(maps.Keys(object)) {
		c, n, err := p.clause(key, object[key], above, depth)
		if err != nil {
			return nil, 0, err
		}
		all, combinations = append(all, c), min(combinations*n, combinationsMax+1)
	}
	if len(all) == 0 && depth > 1 {
		return nil, 0, fmt.Errorf("%.100q has no keys", strings.TrimSuffix(above, "."))
	}
	return all, combinations, nil
}

func (p *parser) clause(key string, under any, above string, depth int) (c clause, combinations int, err error) {
	switch v := under.(type) {
	case []any:
		alternatives, ok := alternativesOf(key, v)
		if !ok {
			p.keys[above+key] = true
			c.key = key
			c.conditions, err = conditions(key, v)
			return c, min(len(v), combinationsMax+1) * depth, err
		}
		for _, one := range alternatives {
			below, n, err := p.clauses(one, above, depth)
			if err != nil {
				return c, 0, err
			}
			c.either, combinations = append(c.either, below), min(combinations+n, combinationsMax+1)
		}
		return c, combinations, nil
	case map[string]any:
		if !p.nested {
			return c, 0, fmt.Errorf("%.100q must be a list of values or conditions; keys in keys need the FilterPolicyScope MessageBody", key)
		}
		c.key = key
		c.below, combinations, err = p.clauses(v, above+key+".", depth+1)
		return c, combinations, err
	}
	return c, 0, fmt.Errorf("%.100q must be a list of values or conditions, or an object", key)
}

// alternativesOf says whether a key is the operator $or, and not one that is called so.
func alternativesOf(key string, list []any) ([]map[string]any, bool) {
	if key != "$or" || len(list) < 2 || len(list) > orMax {
		return nil, false
	}
	var out []map[string]any
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok || len(object) == 0 {
			return nil, false
		}
		out = append(out, object)
	}
	return out, true
}

func conditions(key string, list []any) (out []condition, err error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("the list of %.100q is empty", key)
	}
	for _, item := range list {
		c, err := conditionOf(item)
		if err != nil {
			return nil, fmt.Errorf("%.100q: %w", key, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func conditionOf(item any) (condition, error) {
	if object, ok := item.(map[string]any); ok {
		if len(object) != 1 {
			return nil, errors.New("a condition has one operator")
		}
		for operator, operand := range object {
			return operation(operator, operand)
		}
	}
	want, err := scalar(item)
	if err != nil {
		return nil, err
	}
	return func(v *value) bool { return v != nil && v.of == want }, nil
}

// scalar makes a value comparable with that of a notification.
func scalar(item any) (any, error) {
	switch v := item.(type) {
	case json.Number:
		return number(v)
	case string, bool, nil:
		return v, nil
	}
	return nil, errors.New("a value is a string, a number, true, false or null")
}

func number(text json.Number) (float64, error) {
	f, err := text.Float64()
	if err != nil || math.Abs(f) > numberMax {
		return 0, fmt.Errorf("the number %.40s is not from -10^9 to 10^9", text)
	}
	return accurate(f), nil
}

// accurate is a number with the five digits behind the point that SNS compares.
func accurate(f float64) float64 { return math.Round(f*1e5) / 1e5 }

// texts are the operators that compare a string with one.
var texts = map[string]func(have, want string) bool{
	"prefix": strings.HasPrefix, "suffix": strings.HasSuffix, "equals-ignore-case": strings.EqualFold,
}

func operation(operator string, operand any) (condition, error) {
	if compare, ok := texts[operator]; ok {
		want, ok := operand.(string)
		if !ok || want == "" {
			return nil, fmt.Errorf("%s takes a string", operator)
		}
		return func(v *value) bool {
			have, ok := v.text()
			return ok && compare(have, want)
		}, nil
	}
	switch operator {
	case "exists":
		want, ok := operand.(bool)
		if !ok {
			return nil, errors.New("exists takes true or false")
		}
		return func(v *value) bool { return (v != nil) == want }, nil
	case "anything-but":
		return anythingBut(operand)
	case "numeric":
		return numeric(operand)
	case "cidr":
		text, _ := operand.(string)
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, errors.New("cidr takes a block of addresses, as 10.0.0.0/24")
		}
		return func(v *value) bool {
			have, _ := v.text()
			address, err := netip.ParseAddr(have)
			return err == nil && block.Contains(address)
		}, nil
	}
	return nil, fmt.Errorf("unknown operator %.40q", operator)
}

func (v *value) text() (string, bool) {
	if v == nil {
		return "", false
	}
	text, ok := v.of.(string)
	return text, ok
}

// anythingBut matches a value that is there and is none of those.
func anythingBut(operand any) (condition, error) {
	if object, ok := operand.(map[string]any); ok {
		for operator, below := range object {
			if texts[operator] == nil || len(object) != 1 {
				break
			}
			not, err := operation(operator, below)
			return func(v *value) bool { return v != nil && !not(v) }, err
		}
		return nil, errors.New("anything-but takes values, or one of prefix, suffix and equals-ignore-case")
	}
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	var not []any
	for _, item := range list {
		v, err := scalar(item)
		if err != nil || v == nil {
			return nil, errors.New("anything-but takes strings and numbers")
		}
		not = append(not, v)
	}
	if len(not) == 0 {
		return nil, errors.New("the list of anything-but is empty")
	}
	return func(v *value) bool { return v != nil && !slices.Contains(not, v.of) }, nil
}

// comparisons are the operators of numeric.
var comparisons = map[string]func(have, want float64) bool{
	"=": func(a, b float64) bool { return a == b }, "<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
	">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
}

func numeric(operand any) (condition, error) {
	list, _ := operand.([]any)
	if len(list) != 2 && len(list) != 4 {
		return nil, errors.New(`numeric takes an operator and a number, or two of them, as [">", 0, "<=", 5]`)
	}
	var all []func(float64) bool
	var lowers, uppers int
	for i := 0; i < len(list); i += 2 {
		name, _ := list[i].(string)
		compare := comparisons[name]
		text, ok := list[i+1].(json.Number)
		if compare == nil || !ok {
			return nil, errors.New("numeric takes the operators =, <, <=, > and >=, each with a number")
		}
		want, err := number(text)
		if err != nil {
			return nil, err
		}
		lowers, uppers = lowers+strings.Count(name, ">"), uppers+strings.Count(name, "<")
		all = append(all, func(have float64) bool { return compare(have, want) })
	}
	if len(all) == 2 && (lowers != 1 || uppers != 1) {
		return nil, errors.New("a range of numeric has a lower and an upper bound")
	}
	return func(v *value) bool {
		if v == nil {
			return false
		}
		have, ok := v.of.(float64)
		return ok && !slices.ContainsFunc(all, func(is func(float64) bool) bool { return !is(have) })
	}, nil
}

// parseBody reads a JSON object with its numbers as they are written.
func parseBody(text string) (map[string]any, bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var object map[string]any
	if d.Decode(&object) != nil || object == nil {
		return nil, false
	}
	_, err := d.Token()
	return object, errors.Is(err, io.EOF)
}
