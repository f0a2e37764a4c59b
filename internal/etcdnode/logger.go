package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger gives etcd a logger that ends in ours. etcd is talkative: what it
// calls a warning is mostly a slow disk that healed, so everything but its
// errors is for debugging.
func newLogger(log *slog.Logger, fatal *fatalHook) *zap.Logger {
	return zap.New(slogCore{log: log.With("component", "etcd")},
		zap.WithFatalHook(fatal), zap.WithPanicHook(fatal))
}

// slogCore is a zapcore.Core that writes to slog.
type slogCore struct{ log *slog.Logger }

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return slog.LevelError
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// expected are etcd's complaints about what is in order here: a store that was
// just made has no term yet, and etcd tries again by itself.
var expected = map[string]bool{"failed to update storage version": true}

// Enabled implements zapcore.Core. zap's own debug level is for etcd's authors.
func (c slogCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.InfoLevel && c.log.Enabled(context.Background(), slogLevel(l))
}

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{log: c.log.With(attributes(fields)...)}
}

// Check implements zapcore.Core.
func (c slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slogLevel(e.Level)
	if expected[e.Message] {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, e.Message, attributes(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (c slogCore) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	var out []any
	for _, f := range fields {
		f.AddTo(enc)
		if v, ok := enc.Fields[f.Key]; ok {
			out = append(out, slog.Any(f.Key, v))
		}
	}
	return out
}

// fatalHook takes the place of os.Exit and panic in etcd's logger: it keeps the
// reason and ends only the goroutine, so that the process can say why it stops.
// The write that met the failure is never acknowledged.
type fatalHook struct {
	fired chan struct{}

	mu     sync.Mutex // guards reason
	reason error
}

func newFatalHook() *fatalHook { return &fatalHook{fired: make(chan struct{})} }

// OnWrite implements zapcore.CheckWriteHook.
func (h *fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.fail(reasonOf(e.Message, fields))
	runtime.Goexit()
}

// fail notes the first reason.
func (h *fatalHook) fail(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == nil {
		h.reason = reason
		close(h.fired)
	}
}

func (h *fatalHook) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// reasonOf makes an error of a log line.
func reasonOf(message string, fields []zapcore.Field) error {
	var words []string
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			return fmt.Errorf("etcd: %s: %w", message, err)
		}
		if f.Type == zapcore.StringType {
			words = append(words, f.Key+"="+f.String)
		}
	}
	return errors.New(strings.TrimSpace("etcd: " + message + " " + strings.Join(words, " ")))
}
