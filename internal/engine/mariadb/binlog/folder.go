package binlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// BaseName begins the names of the binary logs in the data folder, as on RDS. They
// lie there because only the server's user and the service may enter it, because it
// is what counts as the instance's storage, and because no folder has to be made in
// instances of an earlier service.
const BaseName = "mysql-bin-changelog"

var binlogForm = regexp.MustCompile(`^` + regexp.QuoteMeta(BaseName) + `\.([0-9]{6,10})$`)

// FileNumber is the number of a binary log, 0 when the name is of none.
func FileNumber(name string) int64 {
	m := binlogForm.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // ten digits fit
	return n
}

// FileName is the name of a number. The server never leaves one out.
func FileName(number int64) string { return fmt.Sprintf("%s.%06d", BaseName, number) }

// List lists the binary logs of a data folder, oldest first.
func List(dataDir string) ([]string, error) {
	entries, err := volume.ReadDir(dataDir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if FileNumber(e.Name()) > 0 && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return kurabe.LogPosition{File: a}.Compare(kurabe.LogPosition{File: b})
	})
	return names, nil
}

// Open opens a file of the server's folder and tells its length. The engine's
// user could have put a link there, to a file of somebody else's.
func Open(root *volume.Root, name string) (*os.File, int64, error) {
	if FileNumber(name) == 0 {
		return nil, 0, fmt.Errorf("invalid binary log name %q", name)
	}
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("%s: %w", name, engine.ErrLogGone)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// tail is what the newest binary log of a stopped server's folder says.
type tail struct {
	End    kurabe.LogPosition // of its last whole group, or of the file
	Closed bool               // the server ended cleanly
	// From is the file that a recovery begins with; it and what follows must be
	// there, or acknowledged transactions are rolled back.
	From string
}

// ReadTail reads the newest binary log; the zero tail when there is none.
func ReadTail(dataDir string) (tail, error) {
	names, err := List(dataDir)
	if err != nil || len(names) == 0 {
		return tail{}, err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return tail{}, err
	}
	defer root.Close()
	name := names[len(names)-1]
	file, size, err := Open(root, name)
	if err != nil {
		return tail{}, err
	}
	defer file.Close()
	t := tail{End: kurabe.LogPosition{File: name}, Closed: true, From: name}
	r := Reader{Source: file, Until: size, CopyTo: io.Discard}
	var groups Grouper
	err = r.ReadMagic()
	for err == nil {
		var e Event
		if e, err = r.Next(); err != nil {
			break
		}
		if from := e.checkpoint(); from != "" {
			t.From = from
		}
		t.Closed = e.Kind == stopEvent
		groups.Add(e)
		if !groups.open {
			t.End.Offset = e.end
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if errors.Is(err, ErrTorn) {
		// Of an empty file nothing is left to recover, whatever made it.
		t.Closed, err = size == 0, nil
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Past says what a copy of a stopped server's folder has no use for: binary logs that
// its recovery does not read.
func (t tail) Past(rel string) bool {
	if !strings.HasPrefix(rel, BaseName+".") {
		return false
	}
	if t.Closed || t.From == "" {
		return true
	}
	return FileNumber(rel) > 0 && (kurabe.LogPosition{File: rel}).Compare(kurabe.LogPosition{File: t.From}) < 0
}

func ParsePosition(file, offset string) (kurabe.LogPosition, error) {
	n, err := strconv.ParseInt(offset, 10, 64)
	if FileNumber(file) == 0 || err != nil || n < 0 {
		return kurabe.LogPosition{}, fmt.Errorf("invalid binlog position %q, %q", file, offset)
	}
	return kurabe.LogPosition{File: file, Offset: n}, nil
}
