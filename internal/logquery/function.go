package logquery

import (
	"bytes"
	"math"
	"net/netip"
	"unicode/utf8"
)

// function is one that has a value for each row. With period, a period follows the least of its
// arguments. An argument that is absent makes the value absent, unless the function takes those.
type function struct {
	least, most int
	period      bool
	eval        func(r *row, a []value, p period) value
}

// takesAbsent are the functions that see absent arguments.
var takesAbsent = map[string]bool{"ispresent": true, "coalesce": true, "isempty": true, "isblank": true, "greatest": true, "least": true, "concat": true}

var functions = map[string]function{
	"abs":      math1(math.Abs),
	"ceil":     math1(math.Ceil),
	"floor":    math1(math.Floor),
	"log":      math1(math.Log),
	"sqrt":     math1(math.Sqrt),
	"greatest": extreme(1),
	"least":    extreme(-1),

	"isempty": {1, 1, false, func(r *row, a []value, _ period) value { return truthValue(len(r.bytesOf(a[0])) == 0) }},
	"isblank": {1, 1, false, func(r *row, a []value, _ period) value {
		return truthValue(len(bytes.TrimSpace(r.bytesOf(a[0]))) == 0)
	}},
	"concat": {1, namesMax, false, func(r *row, a []value, _ period) value {
		return textValue(r.keep(func(b []byte) []byte {
			from := len(b)
			for _, v := range a {
				if len(b)-from < textBytesMax {
					b = v.appendText(b)
				}
			}
			return b
		}))
	}},
	"ltrim": trim(bytes.TrimLeft), "rtrim": trim(bytes.TrimRight), "trim": trim(bytes.Trim),
	"strlen": {1, 1, false, func(r *row, a []value, _ period) value {
		return numberValue(float64(utf8.RuneCount(r.bytesOf(a[0]))))
	}},
	"toupper": {1, 1, false, func(r *row, a []value, _ period) value { return textValue(bytes.ToUpper(r.bytesOf(a[0]))) }},
	"tolower": {1, 1, false, func(r *row, a []value, _ period) value { return textValue(bytes.ToLower(r.bytesOf(a[0]))) }},
	"substr":  {2, 3, false, substr},
	"replace": {3, 3, false, func(r *row, a []value, _ period) value {
		return replaceAll(r.bytesOf(a[0]), r.bytesOf(a[1]), r.bytesOf(a[2]))
	}},
	"strcontains": {2, 2, false, func(r *row, a []value, _ period) value {
		return truthValue(bytes.Contains(r.bytesOf(a[0]), r.bytesOf(a[1])))
	}},

	"bin":        {0, 0, true, func(r *row, _ []value, p period) value { return timeValue(p.floor(r.time)) }},
	"datefloor":  dated(period.floor),
	"dateceil":   dated(period.ceil),
	"frommillis": {1, 1, false, func(r *row, a []value, _ period) value { return moment(a[0]) }},
	"tomillis": {1, 1, false, func(r *row, a []value, _ period) value {
		n, ok := a[0].num()
		return valueIf(ok, numberValue(n))
	}},
	"now": {0, 0, false, func(r *row, _ []value, _ period) value { return numberValue(float64(r.now.Unix())) }},

	"ispresent": {1, 1, false, func(r *row, a []value, _ period) value { return truthValue(a[0].Kind != absent) }},
	"coalesce": {1, namesMax, false, func(r *row, a []value, _ period) value {
		for _, v := range a {
			if v.Kind != absent {
				return v
			}
		}
		return value{}
	}},
	"jsonparse": {1, 1, false, func(r *row, a []value, _ period) value {
		raw := bytes.TrimSpace(r.bytesOf(a[0]))
		return valueIf(len(raw) > 0 && (raw[0] == '{' || raw[0] == '['), textValue(raw))
	}},
	"jsonstringify": {1, 1, false, func(r *row, a []value, _ period) value { return textValue(r.bytesOf(a[0])) }},

	"isvalidip":      address(func(netip.Addr) bool { return true }),
	"isvalidipv4":    address(netip.Addr.Is4),
	"isvalidipv6":    address(netip.Addr.Is6),
	"isipinsubnet":   subnet(func(netip.Addr) bool { return true }),
	"isipv4insubnet": subnet(netip.Addr.Is4),
	"isipv6insubnet": subnet(netip.Addr.Is6),
}

// textBytesMax is where functions stop to make a text longer.
const textBytesMax = 1 << 20

func valueIf(ok bool, v value) value {
	if !ok {
		return value{}
	}
	return v
}

func math1(f func(float64) float64) function {
	return function{1, 1, false, func(_ *row, a []value, _ period) value {
		n, ok := a[0].num()
		return valueIf(ok, numberValue(f(n)))
	}}
}

// extreme is the largest (sign 1) or smallest (-1) of the arguments that are numbers.
func extreme(sign float64) function {
	return function{1, namesMax, false, func(_ *row, a []value, _ period) (best value) {
		for _, v := range a {
			n, ok := v.num()
			if ok && (best.Kind == absent || sign*n > sign*best.Number) {
				best = numberValue(n)
			}
		}
		return best
	}}
}

func trim(cut func([]byte, string) []byte) function {
	return function{1, 2, false, func(r *row, a []value, _ period) value {
		set := " \t\n\r\v\f"
		if len(a) == 2 {
			set = string(r.bytesOf(a[1]))
		}
		return textValue(cut(r.bytesOf(a[0]), set))
	}}
}

// substr returns characters from an index, from 0, to the end or up to a length.
func substr(r *row, a []value, _ period) value {
	s := r.bytesOf(a[0])
	length := float64(len(s))
	from, ok := a[1].num()
	if len(a) == 3 && ok {
		length, ok = a[2].num()
	}
	if !ok {
		return value{}
	}
	skip := func(s []byte, n float64) int {
		at := 0
		for ; n >= 1 && at < len(s); n-- {
			_, size := utf8.DecodeRune(s[at:])
			at += size
		}
		return at
	}
	s = s[skip(s, from):]
	return textValue(s[:skip(s, length)])
}

// replaceAll replaces texts, unless the result were longer than textBytesMax.
func replaceAll(s, old, by []byte) value {
	if len(old) == 0 || len(s)+bytes.Count(s, old)*len(by) > textBytesMax {
		return textValue(s)
	}
	return textValue(bytes.ReplaceAll(s, old, by))
}

func dated(round func(period, int64) int64) function {
	return function{1, 1, true, func(_ *row, a []value, p period) value {
		v := moment(a[0])
		return valueIf(v.Kind != absent, timeValue(round(p, int64(v.Number))))
	}}
}

// moment reads Unix milliseconds; only those of the years 1 to 9999 are a time.
func moment(v value) value {
	const first, last = -62135596800000, 253402300799999
	n, ok := v.num()
	return valueIf(ok && n >= first && n <= last, timeValue(int64(n)))
}

func address(is func(netip.Addr) bool) function {
	return function{1, 1, false, func(r *row, a []value, _ period) value {
		ip, err := netip.ParseAddr(string(r.bytesOf(a[0])))
		return truthValue(err == nil && is(ip))
	}}
}

func subnet(is func(netip.Addr) bool) function {
	return function{2, 2, false, func(r *row, a []value, _ period) value {
		ip, err := netip.ParseAddr(string(r.bytesOf(a[0])))
		net, wrong := netip.ParsePrefix(string(r.bytesOf(a[1])))
		return truthValue(err == nil && wrong == nil && is(ip) && net.Contains(ip))
	}}
}
