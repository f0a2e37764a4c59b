package script

import (
	"errors"
	"math"
	"math/rand/v2"
)

// expression is a node of a \set: a number, a variable, or an operation on others.
type expression struct {
	op          byte // '#' number, ':' variable, 'r' random, 'n' minus, + - * / %
	number      int64
	variable    int
	left, right *expression
}

var (
	errRange  = errors.New("a value is beyond 64 bits")
	errDivide = errors.New("division by zero")
	errRandom = errors.New("random: the lower bound is above the upper one")
)

// Value computes the expression. An overflow, a division by zero and bounds in the wrong order
// are errors.
func (e *expression) Value(vars []int64, chance *rand.Rand) (int64, error) {
	switch e.op {
	case '#':
		return e.number, nil
	case ':':
		return vars[e.variable], nil
	}
	a, err := e.left.Value(vars, chance)
	if err != nil {
		return 0, err
	}
	if e.op == 'n' {
		return subtract(0, a)
	}
	b, err := e.right.Value(vars, chance)
	if err != nil {
		return 0, err
	}
	return calculate(e.op, a, b, chance)
}

func calculate(op byte, a, b int64, chance *rand.Rand) (int64, error) {
	switch op {
	case '+':
		if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
			return 0, errRange
		}
		return a + b, nil
	case '-':
		return subtract(a, b)
	case '*':
		if c := a * b; a == 0 || c/a == b && !(a == -1 && b == math.MinInt64) {
			return c, nil
		}
		return 0, errRange
	case 'r':
		return between(a, b, chance)
	}
	if b == 0 {
		return 0, errDivide
	}
	if a == math.MinInt64 && b == -1 {
		return 0, errRange
	}
	if op == '/' {
		return a / b, nil
	}
	return a % b, nil
}

func subtract(a, b int64) (int64, error) {
	if b < 0 && a > math.MaxInt64+b || b > 0 && a < math.MinInt64+b {
		return 0, errRange
	}
	return a - b, nil
}

// between is uniform from low to high, both included.
func between(low, high int64, chance *rand.Rand) (int64, error) {
	if low > high {
		return 0, errRandom
	}
	span := uint64(high) - uint64(low)
	if span == math.MaxUint64 {
		return int64(chance.Uint64()), nil
	}
	return int64(uint64(low) + chance.Uint64N(span+1)), nil
}
