package kurabe

import (
	"math"
	"strconv"
	"strings"
)

// FormulaVars are the values that a parameter's formula may name. Source of the
// language: the RDS user guide, "Specifying DB parameters".
type FormulaVars struct {
	MemoryBytes  int64 // DBInstanceClassMemory
	CPUs         int   // DBInstanceVCPU
	StorageBytes int64 // AllocatedStorage
	Port         int   // EndPointPort
}

// maxFormula bounds a formula's length in bytes and its nesting.
const (
	maxFormula      = 512
	maxFormulaDepth = 16
)

// IsFormula says whether a parameter value is to be evaluated.
func IsFormula(value string) bool {
	v := strings.TrimSpace(value)
	return strings.HasPrefix(v, "{") || strings.HasPrefix(v, "GREATEST(") ||
		strings.HasPrefix(v, "LEAST(") || strings.HasPrefix(v, "SUM(")
}

// Evaluate computes a value: a plain one is returned as it is, a formula is
// computed in float64 and truncated to an integer, as RDS does.
func (v FormulaVars) Evaluate(value string) (string, error) {
	if !IsFormula(value) {
		return value, nil
	}
	if len(value) > maxFormula {
		return "", Errorf(CodeInvalidParameterValue, "formula is longer than %d bytes", maxFormula)
	}
	p := formulaParser{text: value, vars: v}
	x := p.function()
	p.space()
	if p.err == "" && p.at < len(p.text) {
		p.fail("unexpected text")
	}
	if p.err == "" && (math.IsNaN(x) || math.Abs(x) > 1e18) {
		p.fail("the result is out of range")
	}
	if p.err != "" {
		return "", Errorf(CodeInvalidParameterValue, "formula %q: %s at byte %d", value, p.err, p.at)
	}
	return strconv.FormatInt(int64(x), 10), nil
}

// formulaParser is a recursive descent over the text; the first failure stays.
type formulaParser struct {
	text  string
	at    int
	depth int
	err   string
	vars  FormulaVars
}

func (p *formulaParser) fail(why string) float64 {
	if p.err == "" {
		p.err = why
	}
	return 0
}

func (p *formulaParser) space() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

func (p *formulaParser) take(s string) bool {
	p.space()
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// function reads GREATEST(a,b,…), LEAST(…), SUM(…), {expression} or a number.
func (p *formulaParser) function() float64 {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxFormulaDepth {
		return p.fail("too deeply nested")
	}
	switch {
	case p.take("GREATEST("):
		return p.fold(math.Max)
	case p.take("LEAST("):
		return p.fold(math.Min)
	case p.take("SUM("):
		return p.fold(func(a, b float64) float64 { return a + b })
	case p.take("{"):
		x := p.sum()
		if !p.take("}") {
			return p.fail("missing }")
		}
		return x
	}
	return p.number()
}

func (p *formulaParser) fold(f func(a, b float64) float64) float64 {
	x := p.function()
	for p.err == "" && p.take(",") {
		x = f(x, p.function())
	}
	if !p.take(")") {
		return p.fail("missing )")
	}
	return x
}

func (p *formulaParser) sum() float64 {
	x := p.product()
	for p.err == "" {
		switch {
		case p.take("+"):
			x += p.product()
		case p.take("-"):
			x -= p.product()
		default:
			return x
		}
	}
	return 0
}

func (p *formulaParser) product() float64 {
	x := p.factor()
	for p.err == "" {
		switch {
		case p.take("*"):
			x *= p.factor()
		case p.take("/"):
			d := p.factor()
			if d == 0 && p.err == "" {
				return p.fail("division by zero")
			}
			x /= d
		default:
			return x
		}
	}
	return 0
}

// factor reads a variable, log(…), a number or a bracketed sum.
func (p *formulaParser) factor() float64 {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxFormulaDepth {
		return p.fail("too deeply nested")
	}
	switch {
	case p.take("DBInstanceClassMemory"):
		return float64(p.vars.MemoryBytes)
	case p.take("DBInstanceVCPU"):
		return float64(p.vars.CPUs)
	case p.take("AllocatedStorage"):
		return float64(p.vars.StorageBytes)
	case p.take("EndPointPort"):
		return float64(p.vars.Port)
	case p.take("log("):
		x := p.sum()
		if !p.take(")") {
			return p.fail("missing )")
		}
		return math.Log2(x) // base 2, as the guide says
	case p.take("("):
		x := p.sum()
		if !p.take(")") {
			return p.fail("missing )")
		}
		return x
	}
	return p.number()
}

func (p *formulaParser) number() float64 {
	p.space()
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("0123456789.-", p.text[p.at]) >= 0 && (p.text[p.at] != '-' || p.at == start) {
		p.at++
	}
	x, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil {
		return p.fail("expected a number, a variable or a function")
	}
	return x
}
