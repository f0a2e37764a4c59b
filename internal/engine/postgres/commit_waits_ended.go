package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// What the server writes of a commit that ends its wait for a follower (SyncRepWaitForLSN, the
// same words from 9.1 to 18). There is no counter of it, and the view of the sessions shows
// those that wait, not how a wait has ended. Nothing is written of one that was ended by the
// death of the server: nobody was answered then.
const (
	entryMark   = "]:WARNING:  "
	waitCancels = "canceling wait for synchronous replication due to user request\n"
	waitEnds    = "canceling the wait for synchronous replication and terminating connection due to administrator command\n"
)

// entryHead is how an entry begins by our log_line_prefix. Further lines of one begin with a
// tab, so nobody writes such a line by what is in a statement; a name of a user has fewer
// bytes than these words.
var entryHead = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC:`)

// ownEntry follows the time in entries of the service's sessions. A witness (DESIGN.md) is
// ended in its wait; its commit has nothing in it.
var ownEntry = []byte("[local]:" + adminRole + "@" + adminDatabase + ":[")

// sqlState is what log_error_verbosity puts before the words.
var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}: `)

// countEnded counts in whole lines.
func countEnded(text []byte) (n kurabe.WaitCount) {
	for {
		at := bytes.Index(text, []byte(entryMark))
		if at < 0 {
			return n
		}
		head, rest := text[bytes.LastIndexByte(text[:at], '\n')+1:at], text[at+len(entryMark):]
		time := entryHead.Find(head)
		says := rest[len(sqlState.Find(rest)):]
		switch {
		case time == nil || bytes.HasPrefix(head[len(time):], ownEntry):
		case bytes.HasPrefix(says, []byte(waitCancels)):
			n.Cancelled++
		case bytes.HasPrefix(says, []byte(waitEnds)):
			n.Ended++
		}
		text = rest
	}
}

const (
	// endedChunk is read at once; a line that is longer is no entry of ours.
	endedChunk = 1 << 20
	// endedMost bounds one read: a server that logs everything writes less in a second.
	endedMost = 256 * endedChunk
	// logNameLength is that of a name in the form of logName, without what the server appends
	// to that of another form of log.
	logNameLength = len(logNamePrefix) + len("2006-01-02-15")
)

// ReadWaits implements engine.WaitTeller.
func (d *Driver) ReadWaits(ctx context.Context, i engine.Instance, from engine.LogPlace) (engine.LogPlace, kurabe.WaitCount, error) {
	var total kurabe.WaitCount
	names, err := errorLogs(i.Home.LogDir())
	if err != nil {
		return from, total, err
	}
	if from.File == "" {
		return newestEnd(i.Home.LogDir(), names)
	}
	at := from
	for budget := int64(endedMost); len(names) > 0 && budget > 0; names = names[1:] {
		name := names[0]
		if name < at.File {
			continue
		}
		if name > at.File {
			at = engine.LogPlace{File: name}
		}
		// The names were read before: what was written into this file before there was a
		// newer one is read now.
		n, offset, err := readEnded(ctx, filepath.Join(i.Home.LogDir(), name), at.Offset, budget)
		if err != nil {
			return from, kurabe.WaitCount{}, err
		}
		budget -= offset - at.Offset
		total, at.Offset = total.Plus(n), offset
	}
	return at, total, nil
}

// errorLogs are the names of the server's own logs, oldest first.
func errorLogs(dir string) (names []string, err error) {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), logNamePrefix) && len(e.Name()) == logNameLength {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// newestEnd is the end of the newest log. Without one it is a place before any.
func newestEnd(dir string, names []string) (engine.LogPlace, kurabe.WaitCount, error) {
	if len(names) == 0 {
		return engine.LogPlace{File: logNamePrefix}, kurabe.WaitCount{}, nil
	}
	newest := names[len(names)-1]
	info, err := volume.Stat(filepath.Join(dir, newest))
	if err != nil {
		return engine.LogPlace{}, kurabe.WaitCount{}, err
	}
	return engine.LogPlace{File: newest, Offset: info.Size()}, kurabe.WaitCount{}, nil
}

// readEnded counts in a file from an offset on, to the end of its last whole line, or a little
// further than the budget.
func readEnded(ctx context.Context, path string, offset, budget int64) (total kurabe.WaitCount, end int64, err error) {
	file, err := volume.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return total, offset, nil // removed meanwhile
	}
	if err != nil {
		return total, offset, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return total, offset, err
	}
	if info.Size() == offset {
		return total, offset, nil
	}
	chunk := make([]byte, min(endedChunk, max(info.Size()-offset, 0)+1))
	for end = offset; end-offset < budget; {
		if err := ctx.Err(); err != nil {
			return total, end, err
		}
		n, err := file.ReadAt(chunk, end)
		if err != nil && !errors.Is(err, io.EOF) {
			return total, end, err
		}
		whole := bytes.LastIndexByte(chunk[:n], '\n') + 1
		if whole == 0 && n == endedChunk {
			whole = n // the rest of the line says nothing either
		}
		if whole == 0 {
			return total, end, nil
		}
		total, end = total.Plus(countEnded(chunk[:whole])), end+int64(whole)
	}
	return total, end, nil
}

// TellsWaits implements engine.WaitTeller. A session may set these for itself, which shows
// nowhere.
func (d *Driver) TellsWaits(i engine.Instance) bool {
	level, set := i.Settings["log_min_messages"]
	hides := set && slices.Contains([]string{"error", "log", "fatal", "panic"}, strings.ToLower(level))
	to, set := i.Settings["log_destination"]
	return !hides && (!set || strings.Contains(to, "stderr"))
}
