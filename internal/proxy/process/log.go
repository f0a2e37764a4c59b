package process

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"

	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

const (
	// logBytesMax and logsKept bound the log: the file that is written and those before it.
	logBytesMax = 16 << 20
	logsKept    = 4
	// lineBytesMax bounds a line, which may quote a statement.
	lineBytesMax = 32 << 10
)

// logTime is how lines begin, in UTC.
const logTime = "2006-01-02T15:04:05.000Z"

// handler writes records as RDS's proxies do: time, level and attributes in brackets, text.
//
//	2026-11-29T02:00:00.000Z [WARN] [proxyEndpoint=default] [clientConnection=7] The client session was pinned …
type handler struct {
	out    *rotated
	level  *slog.LevelVar
	before []byte // the attributes of all records
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.before = bytes.Clone(h.before)
	for _, a := range attrs {
		next.before = bracketed(next.before, a)
	}
	return &next
}

// WithGroup implements slog.Handler. RDS's lines have no groups.
func (h *handler) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	line := r.Time.UTC().AppendFormat(nil, logTime)
	line = append(append(append(line, " ["...), r.Level.String()...), ']')
	line = append(line, h.before...)
	var failure string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == logkey.Error {
			failure = " " + a.Value.String()
			return true
		}
		line = bracketed(line, a)
		return true
	})
	line = append(append(append(line, ' '), r.Message...), failure...)
	line = line[:min(len(line), lineBytesMax)]
	for at, c := range line { // a statement has line ends, and what else its sender likes
		if c < ' ' {
			line[at] = ' '
		}
	}
	return h.out.write(append(line, '\n'))
}

func bracketed(line []byte, a slog.Attr) []byte {
	line = append(append(append(line, " ["...), a.Key...), '=')
	return append(append(line, a.Value.Resolve().String()...), ']')
}

// rotated is a file that makes room for another one when it is full.
type rotated struct {
	path string

	mu   sync.Mutex // guards what follows
	file *os.File
	size int64
}

func openLog(path string) (*rotated, error) {
	l := &rotated{path: path}
	return l, l.open()
}

func (l *rotated) open() (err error) {
	if l.file, err = volume.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	info, err := l.file.Stat()
	if err == nil {
		l.size = info.Size()
	}
	return err
}

func (l *rotated) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(line)) > logBytesMax {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return err
}

// rotate renames file N to N+1, and begins a new one.
func (l *rotated) rotate() error {
	name := func(n int) string { return l.path + "." + strconv.Itoa(n) }
	for n := logsKept - 1; n > 1; n-- {
		_ = volume.Rename(name(n-1), name(n)) // there may be none yet
	}
	if err := volume.Rename(l.path, name(1)); err != nil {
		return err
	}
	_ = l.file.Close()
	return l.open()
}

// Close ends the log.
func (l *rotated) Close() error { return l.file.Close() }
