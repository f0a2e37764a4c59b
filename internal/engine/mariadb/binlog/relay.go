package binlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/volume"
)

// RelayPlace is a place in the logs that a follower has received.
type RelayPlace struct {
	File string
	At   int64
}

// FirstUnapplied is where the first transaction begins that is not applied; not left when there is
// none. Transactions are applied in their order, so it is the one behind the last that was.
// Where none of the files' was applied it is the place that the server has noted.
func FirstUnapplied(dataDir string, noted RelayPlace, last []GTID) (from RelayPlace, left bool, err error) {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return noted, false, err
	}
	defer root.Close()
	met := false
	from = noted
	number, err := relayNumber(noted.File)
	for ; err == nil; number++ {
		file := RelayFile(number)
		err = readRelay(root, file, func(at int64, g GTID) {
			switch {
			case slices.Contains(last, g):
				met, left = true, false
			case met && !left:
				from, left = RelayPlace{file, at}, true
			default:
				left = true
			}
		})
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return noted, false, fmt.Errorf("look for what is not applied in the logs that were received: %w", err)
	}
	return from, left, nil
}

func RelayFile(number int64) string { return fmt.Sprintf("%s.%06d", RelayLogName, number) }

func relayNumber(file string) (int64, error) {
	digits, ours := strings.CutPrefix(filepath.Base(file), RelayLogName+".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ours {
		return 0, fmt.Errorf("invalid relay log name %q", file)
	}
	return n, nil
}

// readRelay calls for each transaction where it begins. Events say where they end in the
// source's log, not in this one, so only their lengths are gone by. What is torn at the end
// was not received in full.
func readRelay(root *volume.Root, name string, begins func(at int64, g GTID)) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, eventBufferBytes)
	at := int64(len(Magic))
	if magic, err := r.Peek(len(Magic)); err != nil || string(magic) != Magic {
		return atEnd(err, fmt.Errorf("%s is not a server's log", name))
	}
	_, _ = r.Discard(len(Magic)) // it was there
	for {
		head, err := r.Peek(headerBytes + GTIDBodyBytesLeast)
		if len(head) < headerBytes {
			return atEnd(err, nil)
		}
		length := int64(binary.LittleEndian.Uint32(head[9:]))
		if length < headerBytes || length > EventBytesMax {
			return fmt.Errorf("%s: the event at %d has the invalid length %d", name, at, length)
		}
		if head[4] == GTIDEvent && len(head) == headerBytes+GTIDBodyBytesLeast {
			body := head[headerBytes:]
			begins(at, GTID{domain: binary.LittleEndian.Uint32(body[8:]), Server: binary.LittleEndian.Uint32(head[5:]), Seq: binary.LittleEndian.Uint64(body)})
		}
		if _, err := r.Discard(int(length)); err != nil {
			return atEnd(err, nil)
		}
		at += length
	}
}

// atEnd: an end is none of a reader's errors.
func atEnd(err, otherwise error) error {
	if errors.Is(err, io.EOF) || err == nil {
		return otherwise
	}
	return err
}

// RelayLogName begins the names of the logs that a follower has received. They lie in the
// data folder, as the binary log does; kurabe_guard knows the name.
const RelayLogName = "mysql-relay"
