package logstream

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"kurabe"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is what is known of a piece without its bytes and marks.
type head struct {
	span
	Sum  uint32             `json:"sum"`  // CRC-32C of the bytes
	Next kurabe.LogPosition `json:"next"` // where the log goes on: here, or in the next file
	// After is the piece before this one in its run, nil for the first: what proves
	// that nothing is missing between two files.
	After *span `json:"after,omitempty"`
	// From is the newest mark of the run before the piece, zero without one.
	From kurabe.LogMark `json:"from,omitzero"`
	// Server wrote it, "" of what was kept before instances had several.
	Server kurabe.InstanceID `json:"server,omitempty"`
	// Joins is where the run goes on from, told by its first piece; nil: from nowhere.
	Joins *joint `json:"joins,omitempty"`
}

// joint is a place in another run: what that one has up to there, and the run that begins
// there, are the log without a gap.
type joint struct {
	Run string             `json:"run"`
	At  kurabe.LogPosition `json:"at"`
}

const (
	marksHead     = "kurabe-log 1"
	marksBytesMax = 4 << 20 // a piece lasts a minute or is as fast as a disk; an idle stretch is two marks
)

var errMarks = errors.New("not a list of marks")

// formatMarks is the object beside a piece: text, so that people can read it.
func formatMarks(h head, marks []kurabe.LogMark) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\npiece %s %d %d %08x\n", marksHead, h.File, h.Start, h.End, h.Sum)
	fmt.Fprintf(&b, "next %s %d\n", h.Next.File, h.Next.Offset)
	if h.After != nil {
		fmt.Fprintf(&b, "after %s %d %d\n", h.After.File, h.After.Start, h.After.End)
	}
	if h.Server != "" {
		fmt.Fprintf(&b, "server %s\n", h.Server)
	}
	if h.Joins != nil {
		fmt.Fprintf(&b, "joins %s %s %d %s\n", h.Joins.Run, h.Joins.At.File, h.Joins.At.Offset, h.Joins.At.Server)
	}
	if hasMark(h.From) {
		b.WriteString("from ")
		b.Write(appendMark(nil, h.From))
	}
	for _, m := range marks {
		b.WriteString("mark ")
		b.Write(appendMark(nil, m))
	}
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// appendMark writes times in nanoseconds since 1970.
func appendMark(b []byte, m kurabe.LogMark) []byte {
	b = fmt.Appendf(b, "%d %d %s %d", m.At.UnixNano(), m.Until.UnixNano(), m.Position.File, m.Position.Offset)
	if m.State != "" {
		b = append(append(b, ' '), m.State...)
	}
	return append(b, '\n')
}

func hasMark(m kurabe.LogMark) bool { return m.Position.File != "" }

// parseMarks accepts exactly what formatMarks writes.
func parseMarks(text []byte) (head, []kurabe.LogMark, error) {
	body, sum, ok := cutSum(text)
	if !ok || crc32.Checksum(body, castagnoli) != sum {
		return head{}, nil, fmt.Errorf("%w: the checksum does not fit", errMarks)
	}
	var h head
	var marks []kurabe.LogMark
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	if len(lines) < 3 || lines[0] != marksHead {
		return head{}, nil, fmt.Errorf("%w of version 1", errMarks)
	}
	for _, line := range lines[1:] {
		var err error
		if marks, err = parseLine(line, &h, marks); err != nil {
			return head{}, nil, err
		}
	}
	if !bytes.Equal(formatMarks(h, marks), text) {
		return head{}, nil, fmt.Errorf("%w: contradicting lines", errMarks)
	}
	return h, marks, checkHead(h, marks)
}

func cutSum(text []byte) (body []byte, sum uint32, ok bool) {
	const length = len("sum 00000000\n")
	if len(text) < length || len(text) > marksBytesMax {
		return nil, 0, false
	}
	body, last := text[:len(text)-length], string(text[len(text)-length:])
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(last, "sum "), "\n"), 16, 32)
	return body, uint32(n), err == nil
}

func parseLine(line string, h *head, marks []kurabe.LogMark) ([]kurabe.LogMark, error) {
	kind, rest, _ := strings.Cut(line, " ")
	f := strings.Split(rest, " ")
	var err error
	bad := func() ([]kurabe.LogMark, error) { return nil, fmt.Errorf("%w: line %.80q", errMarks, line) }
	switch {
	case kind == "piece" && len(f) == 4:
		var sum uint64
		sum, err = strconv.ParseUint(f[3], 16, 32)
		h.span, h.Sum = span{f[0], number(f[1], &err), number(f[2], &err)}, uint32(sum)
	case kind == "next" && len(f) == 2:
		h.Next = kurabe.LogPosition{File: f[0], Offset: number(f[1], &err)}
	case kind == "after" && len(f) == 3:
		h.After = &span{f[0], number(f[1], &err), number(f[2], &err)}
	case kind == "server" && len(f) == 1:
		h.Server = kurabe.InstanceID(f[0])
	case kind == "joins" && len(f) == 4:
		h.Joins = &joint{f[0], kurabe.LogPosition{File: f[1], Offset: number(f[2], &err), Server: kurabe.InstanceID(f[3])}}
	case kind == "from":
		h.From, err = parseMark(rest)
	case kind == "mark":
		var m kurabe.LogMark
		m, err = parseMark(rest)
		marks = append(marks, m)
	default:
		return bad()
	}
	if err != nil {
		return bad()
	}
	return marks, nil
}

func number(text string, err *error) int64 {
	n, e := strconv.ParseInt(text, 10, 64)
	*err = errors.Join(*err, e)
	return n
}

func parseMark(text string) (m kurabe.LogMark, err error) {
	f := strings.Split(strings.TrimSuffix(text, "\n"), " ")
	if len(f) != 4 && len(f) != 5 {
		return m, errMarks
	}
	at, until := number(f[0], &err), number(f[1], &err)
	m = kurabe.LogMark{At: time.Unix(0, at).UTC(), Until: time.Unix(0, until).UTC(),
		Position: kurabe.LogPosition{File: f[2], Offset: number(f[3], &err)}}
	if len(f) == 5 {
		m.State = f[4]
	}
	return m, errors.Join(err, checkPart(f[2]))
}

// checkHead says if all of it can be true.
func checkHead(h head, marks []kurabe.LogMark) error {
	err := errors.Join(checkPart(h.File), checkPart(h.Next.File))
	if err == nil && h.After != nil {
		err = checkPart(h.After.File)
	}
	if err == nil && h.Joins != nil {
		err = errors.Join(checkPart(h.Joins.Run), checkPart(h.Joins.At.File))
	}
	if err != nil || h.Start < 0 || h.End < h.Start || h.Next.Compare(h.to()) < 0 {
		return fmt.Errorf("%w: invalid range (%v)", errMarks, err)
	}
	last := h.From
	for _, m := range marks {
		if m.At.Before(last.At) || m.Until.Before(m.At) || m.Position.Compare(last.Position) < 0 {
			return fmt.Errorf("%w: not in order", errMarks)
		}
		last = m
	}
	return nil
}

// addMark keeps of a stretch in which nothing was written the first mark and the last
// one: for any moment between them both say the same position.
func addMark(marks []kurabe.LogMark, m kurabe.LogMark) []kurabe.LogMark {
	if n := len(marks); n >= 2 && marks[n-1].Position == m.Position && marks[n-2].Position == m.Position {
		marks[n-1] = m
		return marks
	}
	return append(marks, m)
}
