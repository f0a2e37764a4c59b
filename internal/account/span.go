package account

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds of a span: below are the ids of a distribution and of people, above are those
// that the kernel or systemd give a meaning to.
const (
	idMin       = 10_000
	idMax       = 1<<31 - 2
	spanMin     = 16
	spanDefault = 100_000
	spanFirst   = 700_000
	spanTries   = 100
)

// Span is a range of ids, both ends included.
type Span struct{ First, Last int }

func (s Span) String() string { return fmt.Sprintf("%d-%d", s.First, s.Last) }

func (s Span) size() int { return s.Last - s.First + 1 }

func (s Span) holds(id int) bool { return s.First <= id && id <= s.Last }

func (s Span) meets(o Span) bool { return s.First <= o.Last && o.First <= s.Last }

// ParseSpan reads FIRST-LAST.
func ParseSpan(text string) (Span, error) {
	first, last, ok := strings.Cut(text, "-")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(last)
	s := Span{a, b}
	switch {
	case !ok || errA != nil || errB != nil:
		return Span{}, fmt.Errorf("invalid range of user ids %q; example: %d-%d", text, spanFirst, spanFirst+spanDefault-1)
	case s.First < idMin || s.Last > idMax:
		return Span{}, fmt.Errorf("%s: ids are from %d to %d", s, idMin, idMax)
	case s.size() < spanMin:
		return Span{}, fmt.Errorf("%s: a range has %d ids or more", s, spanMin)
	}
	return s, nil
}

// taken are the ids of the system's files below etc, with the file that names them.
func taken(etc string) (map[Span]string, error) {
	all := map[Span]string{}
	for name, fields := range map[string]int{"passwd": 3, "group": 3, "subuid": 3, "subgid": 3} {
		path := filepath.Join(etc, name)
		if err := readIDs(path, strings.HasPrefix(name, "sub"), fields, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readIDs reads NAME:x:ID of a list of users or groups, or NAME:FIRST:COUNT of ids that
// containers of a user have.
func readIDs(path string, counts bool, fields int, all map[Span]string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := strings.Split(lines.Text(), ":")
		if len(f) < fields {
			continue
		}
		last, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		s := Span{last, last}
		if counts {
			first, err := strconv.Atoi(f[1])
			if err != nil || last < 1 {
				continue
			}
			s = Span{first, first + last - 1}
		}
		all[s] = path
	}
	return lines.Err()
}

// Check refuses a span that the system's files below etc give to others.
func (s Span) Check(etc string) error {
	all, err := taken(etc)
	if err != nil {
		return err
	}
	for other, path := range all {
		if s.meets(other) {
			return fmt.Errorf("the user ids %s overlap %s of %s", s, other, path)
		}
	}
	return nil
}

// FreeSpan is the first default span that meets nobody's.
func FreeSpan(etc string) (Span, error) {
	var err error
	for n := range spanTries {
		s := Span{spanFirst + n*spanDefault, spanFirst + (n+1)*spanDefault - 1}
		if err = s.Check(etc); err == nil {
			return s, nil
		}
	}
	return Span{}, err
}
