package mariadb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// binlogName begins the names of the binary logs in the data folder, as on RDS. They
// lie there because only the server's user and the service may enter it, because it
// is what counts as the instance's storage, and because no folder has to be made in
// instances of an earlier service.
const binlogName = "mysql-bin-changelog"

var binlogForm = regexp.MustCompile(`^` + regexp.QuoteMeta(binlogName) + `\.([0-9]{6,10})$`)

// binlogNumber is the number of a binary log, 0 when the name is of none.
func binlogNumber(name string) int64 {
	m := binlogForm.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // ten digits fit
	return n
}

// binlogFile is the name of a number. The server never leaves one out.
func binlogFile(number int64) string { return fmt.Sprintf("%s.%06d", binlogName, number) }

// binlogs lists the binary logs of a data folder, oldest first.
func binlogs(dataDir string) ([]string, error) {
	entries, err := volume.ReadDir(dataDir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if binlogNumber(e.Name()) > 0 && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return kurabe.LogPosition{File: a}.Compare(kurabe.LogPosition{File: b})
	})
	return names, nil
}

// openBinlog opens a file of the server's folder and tells its length. The engine's
// user could have put a link there, to a file of somebody else's.
func openBinlog(root *volume.Root, name string) (*os.File, int64, error) {
	if binlogNumber(name) == 0 {
		return nil, 0, fmt.Errorf("%q is no name of a binary log", name)
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
	end    kurabe.LogPosition // of its last whole group, or of the file
	closed bool               // the server ended cleanly
	// from is the file that a recovery begins with; it and what follows must be
	// there, or acknowledged transactions are rolled back.
	from string
}

// readTail reads the newest binary log; the zero tail when there is none.
func readTail(dataDir string) (tail, error) {
	names, err := binlogs(dataDir)
	if err != nil || len(names) == 0 {
		return tail{}, err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return tail{}, err
	}
	defer root.Close()
	name := names[len(names)-1]
	file, size, err := openBinlog(root, name)
	if err != nil {
		return tail{}, err
	}
	defer file.Close()
	t := tail{end: kurabe.LogPosition{File: name}, closed: true, from: name}
	r := eventReader{source: file, until: size, copyTo: io.Discard}
	var groups grouper
	err = r.readMagic()
	for err == nil {
		var e event
		if e, err = r.next(); err != nil {
			break
		}
		if from := e.checkpoint(); from != "" {
			t.from = from
		}
		t.closed = e.kind == stopEvent
		groups.add(e)
		if !groups.open {
			t.end.Offset = e.end
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if errors.Is(err, errTorn) {
		// Of an empty file nothing is left to recover, whatever made it.
		t.closed, err = size == 0, nil
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}
