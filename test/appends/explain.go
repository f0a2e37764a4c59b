package appends

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Explain says in words what is wrong with a history, in which each list is read at its end:
// the search for an order says only that there is none, or takes for ever.
//
// Nothing wrong means that there is an order: values are told apart, so the longest list says
// where each append is, and a read comes after the last one that it saw. What never came to be
// comes last. That is one unless somebody sees less than what had ended before it began, or
// something that had not begun: then there is none.
func Explain(ops []porcupine.Operation) (wrong []string) {
	for key, of := range byKey(ops) {
		final := ""
		for _, o := range of {
			if text, read := o.Output.(string); read && len(text) > len(final) {
				final = text
			}
		}
		wrong = append(wrong, explainKey(key, of, final)...)
	}
	slices.Sort(wrong)
	return wrong
}

func byKey(ops []porcupine.Operation) map[int][]porcupine.Operation {
	keys := map[int][]porcupine.Operation{}
	for _, o := range ops {
		k := o.Input.(Op).Key
		keys[k] = append(keys[k], o)
	}
	return keys
}

func explainKey(key int, ops []porcupine.Operation, final string) (wrong []string) {
	say := func(o porcupine.Operation, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("key %d, %.3fs to %.3fs: ", key, float64(o.Call)/1e9, float64(o.Return)/1e9)+fmt.Sprintf(format, args...))
	}
	called := map[int]int64{}
	for _, o := range ops {
		called[o.Input.(Op).Value] = o.Call
	}
	place := map[int]int{} // of a value in the list, from 1 on
	for n, value := range values(final) {
		if place[value] != 0 {
			wrong = append(wrong, fmt.Sprintf("key %d: %d is there twice", key, value))
		}
		if _, begun := called[value]; !begun {
			wrong = append(wrong, fmt.Sprintf("key %d: %d is there, which was never to be committed", key, value))
		}
		place[value] = n + 1
	}
	// Whatever was begun when others had ended sees at least what they did.
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Return-b.Return))) })
	length := func(o porcupine.Operation) int {
		if v := o.Input.(Op).Value; v != 0 {
			return place[v]
		}
		return strings.Count(o.Output.(string), ",")
	}
	for n, o := range ops {
		value := o.Input.(Op).Value
		for _, v := range valuesOf(o) {
			if called[v] > o.Return {
				say(o, "%d was read before it was begun, at %.3fs", v, float64(called[v])/1e9)
			}
		}
		if text, read := o.Output.(string); read && !strings.HasPrefix(final+",", text+",") {
			say(o, "a read of %s, which is not how %s begins", text, final)
			continue
		}
		if value != 0 && place[value] == 0 {
			if o.Return != Never {
				say(o, "%d was acknowledged and is missing", value)
			}
			continue
		}
		for _, before := range ops[:n] {
			if before.Return < o.Call && length(before) > length(o) {
				say(o, "%s sees %d values, and %d had been there for %s, which ended at %.3fs", what(o), length(o), length(before), what(before), float64(before.Return)/1e9)
				break
			}
		}
	}
	return wrong
}

// values are those of a list, which begins with a comma.
func values(list string) (all []int) {
	for _, word := range strings.Split(list, ",")[1:] {
		value, _ := strconv.Atoi(word) // what is no number nobody Op: 0
		all = append(all, value)
	}
	return all
}

// valuesOf are those that were read.
func valuesOf(o porcupine.Operation) []int {
	text, _ := o.Output.(string)
	return values(text)
}

func what(o porcupine.Operation) string { return Model.DescribeOperation(o.Input, o.Output) }
