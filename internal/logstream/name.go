package logstream

import (
	"fmt"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/blob"
)

const (
	prefix      = "logs/"
	marksSuffix = ".marks"
	digits      = 20 // of an int64 and one, so that names sort as numbers do
)

// span is a range of bytes of one of the engine's files.
type span struct {
	File  string `json:"file"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

func (s span) from() kurabe.LogPosition { return kurabe.LogPosition{File: s.File, Offset: s.Start} }
func (s span) to() kurabe.LogPosition   { return kurabe.LogPosition{File: s.File, Offset: s.End} }

func (s span) String() string {
	return fmt.Sprintf("%s/%0*d-%0*d", s.File, digits, s.Start, digits, s.End)
}

func (s span) compare(o span) int {
	if c := s.from().Compare(o.from()); c != 0 {
		return c
	}
	return s.to().Compare(o.to())
}

func objectName(id kurabe.InstanceID, run string, s span) string {
	return prefix + string(id) + "/" + run + "/" + s.String()
}

// object is the name of a piece or of its marks, taken apart.
type object struct {
	id    kurabe.InstanceID
	run   string
	span  span
	marks bool
}

// parseObject is false for a name that is not one of ours.
func parseObject(name string) (object, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return object{}, false
	}
	rest, marks := strings.CutSuffix(rest, marksSuffix)
	parts := strings.Split(rest, "/")
	if len(parts) != 4 {
		return object{}, false
	}
	from, to, ok := strings.Cut(parts[3], "-")
	start, err1 := parseDigits(from)
	end, err2 := parseDigits(to)
	o := object{kurabe.InstanceID(parts[0]), parts[1], span{parts[2], start, end}, marks}
	return o, ok && err1 == nil && err2 == nil && start < end && checkPart(parts[0]) == nil
}

func parseDigits(text string) (int64, error) {
	if len(text) != digits || text[0] != '0' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// checkPart says if a name may be one part of an object's name and one of a path.
func checkPart(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("%q: %w", name, blob.ErrName)
	}
	return blob.CheckName(name)
}
