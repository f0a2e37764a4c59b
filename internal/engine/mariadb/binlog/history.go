package binlog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"kurabe/internal/volume"
)

// LastLogged is the newest transaction in the binary logs of a folder that no server works
// on; false when they name none.
func LastLogged(dataDir string) (GTID, bool, error) {
	list, err := NewestLogged(dataDir)
	g, found := Newest(list)
	return g, found, err
}

// NewestLogged is the newest transaction of each writer in them. Each file begins with a list of
// what was before it.
func NewestLogged(dataDir string) ([]GTID, error) {
	names, err := List(dataDir)
	if err != nil {
		return nil, err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range slices.Backward(names) {
		list, empty, err := loggedIn(root, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !empty {
			return list, nil
		}
	}
	return nil, nil
}

// loggedIn is what a file begins with and has in it. One is empty whose server died when it
// had made it.
func loggedIn(root *volume.Root, name string) (list []GTID, empty bool, err error) {
	file, size, err := Open(root, name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	r := Reader{Source: file, Until: size, CopyTo: io.Discard}
	var groups Grouper
	empty = true
	for err = r.ReadMagic(); err == nil; {
		var e Event
		if e, err = r.Next(); err != nil {
			break
		}
		if e.Kind == GTIDListEvent {
			if list, err = e.gtidList(); err != nil {
				return nil, false, err
			}
			empty = false
		}
		if g, whole := groups.Add(e); whole {
			list = append(list, g.gtid)
		}
	}
	// What a crash tore the server has rolled back.
	if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) {
		err = nil
	}
	return list, empty, err
}
