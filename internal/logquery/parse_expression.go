package logquery

import (
	"strconv"
	"strings"
)

// expression reads an expression. From loose to tight: or, and, not, comparisons, + and -,
// * / and %, the sign, ^.
func (p *parser) expression() expr {
	if p.depth++; p.depth > depthMax {
		fail(p.next.start, p.next.end, "the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	return p.chain([]string{"or"}, func() expr {
		return p.chain([]string{"and"}, p.not)
	})
}

// chain reads operands with operators of one strength, from left to right.
func (p *parser) chain(ops []string, operand func() expr) expr {
	x := operand()
	for links := 0; ; links++ {
		op := ""
		for _, o := range ops {
			if p.next.is(o) || p.next.word(o) {
				op = o
			}
		}
		if op == "" {
			return x
		}
		if links == namesMax { // the depth of the tree
			fail(p.next.start, p.next.end, "the expression is too long")
		}
		p.take()
		b := operand()
		x = &binary{pos{x.span().start, p.last}, op, x, b}
	}
}

func (p *parser) not() expr {
	t := p.next
	if !t.word("not") {
		return p.comparison()
	}
	if p.depth++; p.depth > depthMax {
		fail(t.start, t.end, "the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	p.take()
	x := p.not()
	return &negation{p.from(t.start), true, x}
}

func (p *parser) comparison() expr {
	x := p.sum()
	start := x.span().start
	for _, op := range []string{"=", "!=", "<", "<=", ">", ">="} {
		if p.accept(op) {
			b := p.sum()
			return &binary{p.from(start), op, x, b}
		}
	}
	if p.next.is("=~") {
		p.take()
		pt := p.pattern()
		return &match{p.from(start), x, false, pt}
	}
	not := p.acceptWord("not")
	switch {
	case p.acceptWord("like"):
		pt := p.pattern()
		return &match{p.from(start), x, not, pt}
	case p.acceptWord("in"):
		m := &member{x: x, not: not}
		p.expect("[")
		for {
			if m.list = append(m.list, p.sum()); len(m.list) > namesMax {
				fail(start, p.last, "the list has more than %d values", namesMax)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect("]")
		m.pos = p.from(start)
		return m
	case not:
		p.unexpected("like or in")
	}
	return x
}

// pattern reads the right side of like and =~.
func (p *parser) pattern() pattern {
	if source, start, end, ok := p.regexp(); ok {
		re := compileRegexp(source, start, end)
		if literal, all := re.LiteralPrefix(); all {
			return pattern{literal: literal}
		}
		return pattern{re: re}
	}
	if p.next.kind != tokenText {
		p.unexpected("a text in quotes, or a regular expression between slashes")
	}
	return pattern{literal: p.take().text}
}

func (p *parser) sum() expr {
	return p.chain([]string{"+", "-"}, func() expr { return p.chain([]string{"*", "/", "%"}, p.sign) })
}

func (p *parser) sign() expr {
	t := p.next
	if !t.is("-") {
		return p.power()
	}
	if p.depth++; p.depth > depthMax {
		fail(t.start, t.end, "the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	p.take()
	x := p.sign()
	return &negation{p.from(t.start), false, x}
}

func (p *parser) power() expr {
	x := p.primary()
	if !p.accept("^") {
		return x
	}
	b := p.sign() // of 2 ^ 3 ^ 2 the right one first
	return &binary{p.from(x.span().start), "^", x, b}
}

func (p *parser) primary() expr {
	t := p.next
	at := pos{t.start, t.end}
	switch {
	case t.kind == tokenNumber:
		p.take()
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			fail(t.start, t.end, "the number %s is out of range", t.text)
		}
		return &number{at, v}
	case t.kind == tokenText:
		p.take()
		return &text{at, t.text}
	case t.is("("):
		p.take()
		x := p.expression()
		p.expect(")")
		return &group{p.from(t.start), x}
	case t.word("true"), t.word("false"):
		p.take()
		return &truth{at, t.word("true")}
	case t.kind != tokenName || reserved(t):
		p.unexpected("a field, a number, a text, a function or (")
	}
	p.take()
	if t.quoted || !p.next.is("(") {
		return &name{at, t.text}
	}
	return p.call(t)
}

// reserved are words that are a field's name only in backquotes.
func reserved(t token) bool {
	for _, w := range []string{"as", "by", "and", "or", "not", "like", "in"} {
		if t.word(w) {
			return true
		}
	}
	return false
}

func (p *parser) call(t token) expr {
	c := &call{function: strings.ToLower(t.text)}
	f, known := functions[c.function]
	if a, is := aggregates[c.function]; is {
		f, known = function{a.least, a.most, false, nil}, true
	}
	if !known {
		fail(t.start, t.end, "unknown function %s", t.text)
	}
	p.expect("(")
	switch {
	case c.function == "count" && (p.next.is("*") || p.next.is(")")):
		c.star = true
		p.accept("*")
	case p.next.is(")"):
	default:
		for {
			if f.period && len(c.args) == f.least {
				c.period = p.period()
			} else {
				c.args = append(c.args, p.expression())
			}
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect(")")
	c.pos = p.from(t.start)
	switch n := len(c.args); {
	case c.star:
	case n < f.least || n > f.most:
		fail(c.start, c.end, "%s takes %s, not %d", t.text, arguments(f), n)
	case f.period && c.period.count == 0:
		fail(c.start, c.end, "%s needs a period, for example 5m", t.text)
	}
	return c
}

func arguments(f function) string {
	switch {
	case f.least == 1 && f.most == 1:
		return "1 argument"
	case f.least == f.most:
		return strconv.Itoa(f.least) + " arguments"
	case f.most == namesMax:
		return "at least " + strconv.Itoa(f.least) + " arguments"
	}
	return strconv.Itoa(f.least) + " to " + strconv.Itoa(f.most) + " arguments"
}

// period reads 5m, or 5 minutes.
func (p *parser) period() period {
	t := p.next
	if t.kind != tokenPeriod && t.kind != tokenNumber {
		p.unexpected("a period, for example 5m")
	}
	p.take()
	digits := strings.TrimRight(t.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, end := t.text[len(digits):], t.end
	if t.kind == tokenNumber && p.next.kind == tokenName {
		end = p.next.end
		unit = p.take().text
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	period, ok := periodOf(n, unit)
	if err != nil || !ok {
		fail(t.start, end, "%s is no period: a whole number with ms, s, m, h, d, w, mo, q or y", p.query[t.start:end])
	}
	return period
}
