package mariadb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// relayPlace is a place in the logs that a follower has received.
type relayPlace struct {
	file string
	at   int64
}

// applyLeft applies what a server has received that was started anew, or that reads its
// files on already, because somebody began with this and died. One by one: several threads
// that begin in the midst of the files bring the server down (10.11.19 compares names of logs
// that it has not learned yet, in compare_log_names).
//
// While positions are GTIDs the server notes how far it is in its files only where it begins
// another one, up to 64 MiB ago. So the place is looked for. None that was applied is met
// twice then; one that is out of order is not passed over, because it is another one.
//
// A writer whose commits wait from its start on would wait here for an answer to what it
// applies, and nobody follows it before it has been promoted. No client is in, and each of
// them waits for what is written when it has begun to wait again.
func applyLeft(ctx context.Context, a *admin, i engine.Instance) error {
	if err := a.execAll(ctx, "SET GLOBAL "+waitingSetting+" = 0", "STOP SLAVE"); err != nil {
		return err
	}
	if err := applyUnwaited(ctx, a, i); err != nil {
		return err
	}
	return a.exec(ctx, "SET GLOBAL "+waitingSetting+" = "+flag(len(waitsFor(i)) > 0))
}

func applyUnwaited(ctx context.Context, a *admin, i engine.Instance) error {
	s, err := askSlave(ctx, a)
	if err != nil || s == nil || s.relayFile == "" {
		return err
	}
	last, err := lastApplied(ctx, a)
	if err != nil {
		return err
	}
	from, left, err := leftFrom(i.Home.DataDir(), relayPlace{s.relayFile, s.relayAt}, last)
	if err != nil || !left {
		return err
	}
	err = a.execAll(ctx, "SET GLOBAL slave_parallel_threads = 0",
		fmt.Sprintf("CHANGE MASTER TO MASTER_USE_GTID=no, RELAY_LOG_FILE=%s, RELAY_LOG_POS=%d", quoteLiteral(from.file), from.at),
		"START SLAVE SQL_THREAD")
	if err == nil {
		err = awaitRead(ctx, a)
	}
	return errors.Join(err, a.execAll(ctx, "STOP SLAVE", "SET GLOBAL slave_parallel_threads = "+strconv.Itoa(applyThreads)))
}

// lastApplied are the newest transactions that the server has: one whose statement is a
// transaction of its own may be in its binary log and not yet be noted, one that it filters
// out is noted and not in its log.
func lastApplied(ctx context.Context, a *admin) ([]gtid, error) {
	rows, err := a.query(ctx, "SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_pos")
	if err != nil {
		return nil, err
	}
	return parseGTIDs(rows[0][0] + "," + rows[0][1])
}

// leftFrom is where the first transaction begins that is not applied; not left when there is
// none. Transactions are applied in their order, so it is the one behind the last that was.
// Where none of the files' was applied it is the place that the server has noted.
func leftFrom(dataDir string, noted relayPlace, last []gtid) (from relayPlace, left bool, err error) {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return noted, false, err
	}
	defer root.Close()
	met := false
	from = noted
	number, err := relayNumber(noted.file)
	for ; err == nil; number++ {
		file := receivedFile(number)
		err = readRelay(root, file, func(at int64, g gtid) {
			switch {
			case slices.Contains(last, g):
				met, left = true, false
			case met && !left:
				from, left = relayPlace{file, at}, true
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

func receivedFile(number int64) string { return fmt.Sprintf("%s.%06d", relayLogName, number) }

func relayNumber(file string) (int64, error) {
	digits, ours := strings.CutPrefix(filepath.Base(file), relayLogName+".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ours {
		return 0, fmt.Errorf("%q is no name of a log that was received", file)
	}
	return n, nil
}

// readRelay calls for each transaction where it begins. Events say where they end in the
// source's log, not in this one, so only their lengths are gone by. What is torn at the end
// was not received in full.
func readRelay(root *volume.Root, name string, begins func(at int64, g gtid)) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, eventBufferBytes)
	at := int64(len(logMagic))
	if magic, err := r.Peek(len(logMagic)); err != nil || string(magic) != logMagic {
		return atEnd(err, fmt.Errorf("%s is no log of a server", name))
	}
	_, _ = r.Discard(len(logMagic)) // it was there
	for {
		head, err := r.Peek(headerBytes + gtidBodyBytesLeast)
		if len(head) < headerBytes {
			return atEnd(err, nil)
		}
		length := int64(binary.LittleEndian.Uint32(head[9:]))
		if length < headerBytes || length > eventBytesMax {
			return fmt.Errorf("%s says of the event at %d that it has %d bytes", name, at, length)
		}
		if head[4] == gtidEvent && len(head) == headerBytes+gtidBodyBytesLeast {
			body := head[headerBytes:]
			begins(at, gtid{domain: binary.LittleEndian.Uint32(body[8:]), server: binary.LittleEndian.Uint32(head[5:]), seq: binary.LittleEndian.Uint64(body)})
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
