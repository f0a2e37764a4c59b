package mariadb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"kurabe/internal/volume"
)

// lastLogged is the newest transaction in the binary logs of a folder that no server works
// on; false when they name none.
func lastLogged(dataDir string) (gtid, bool, error) {
	list, err := newestLogged(dataDir)
	g, found := newest(list)
	return g, found, err
}

// newestLogged is the newest transaction of each writer in them. Each file begins with a list of
// what was before it.
func newestLogged(dataDir string) ([]gtid, error) {
	names, err := binlogs(dataDir)
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
func loggedIn(root *volume.Root, name string) (list []gtid, empty bool, err error) {
	file, size, err := openBinlog(root, name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	r := eventReader{source: file, until: size, copyTo: io.Discard}
	var groups grouper
	empty = true
	for err = r.readMagic(); err == nil; {
		var e event
		if e, err = r.next(); err != nil {
			break
		}
		if e.kind == gtidListEvent {
			if list, err = e.gtidList(); err != nil {
				return nil, false, err
			}
			empty = false
		}
		if g, whole := groups.add(e); whole {
			list = append(list, g.gtid)
		}
	}
	// What a crash tore the server has rolled back.
	if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
		err = nil
	}
	return list, empty, err
}

// Parts of an event that lists transactions: the upper bits of the count are flags.
const (
	gtidListCountBytes = 4
	gtidListCountMask  = 1<<28 - 1
	gtidListEntryBytes = 4 + 4 + 8
)

func (e event) gtidList() ([]gtid, error) {
	if len(e.body) < gtidListCountBytes {
		return nil, errors.New("a list of transactions is cut short")
	}
	count := int(binary.LittleEndian.Uint32(e.body) & gtidListCountMask)
	rest := e.body[gtidListCountBytes:]
	if count > len(rest)/gtidListEntryBytes {
		return nil, errors.New("a list of transactions is cut short")
	}
	list := make([]gtid, 0, count)
	for range count {
		list = append(list, gtid{
			domain: binary.LittleEndian.Uint32(rest), server: binary.LittleEndian.Uint32(rest[4:]), seq: binary.LittleEndian.Uint64(rest[8:]),
		})
		rest = rest[gtidListEntryBytes:]
	}
	return list, nil
}
