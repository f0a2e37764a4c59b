package guard

import (
	"encoding/binary"
	"errors"
)

var errShortAnswer = errors.New("the guard's answer is cut off")

// decodeAnswer reads the body of an answer of kurabe_guard.
func decodeAnswer(body []byte) ([][]string, error) {
	r := answerReader{rest: body}
	switch kind := r.take(1); {
	case r.short:
		return nil, errShortAnswer
	case kind[0] == answerOK:
		return nil, nil
	case kind[0] == answerError:
		number := r.number()
		if r.short {
			return nil, errShortAnswer
		}
		return nil, &Error{number, string(r.rest)}
	case kind[0] == answerRows:
		return r.rows()
	}
	return nil, errors.New("the guard's answer is of an unknown kind")
}

// answerReader takes an answer apart; what is missing reads as zero and is noted.
type answerReader struct {
	rest  []byte
	short bool
}

func (r *answerReader) take(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *answerReader) number() uint32 {
	raw := r.take(4)
	if r.short {
		return 0
	}
	return binary.BigEndian.Uint32(raw)
}

func (r *answerReader) rows() ([][]string, error) {
	columns := int(r.number())
	if r.short || (columns == 0 && len(r.rest) > 0) {
		return nil, errShortAnswer
	}
	var rows [][]string
	for len(r.rest) > 0 {
		var row []string
		for range columns {
			length := r.number()
			if length == nullLength {
				row = append(row, "")
				continue
			}
			row = append(row, string(r.take(int(length))))
			if r.short {
				return nil, errShortAnswer
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
