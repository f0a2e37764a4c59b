package service

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine"
	"kurabe/internal/logstream"
)

// newLogs keeps the continuous logs of the host's instances: in a spool beside the
// instances, and from there in the repository.
func newLogs(host kurabe.HostID, seen string, r *repository, changed func(kurabe.InstanceID), log *slog.Logger) (hostLogs, error) {
	s, err := logstream.New(logstream.Config{
		Host: string(host), Spool: filepath.Join(seen, "logs"), Repository: r.get, Changed: changed, Log: log,
		Gone: func(err error) bool { return errors.Is(err, engine.ErrLogGone) },
	})
	return hostLogs{s}, err
}

// hostLogs is a store of logs as the agent sees it.
type hostLogs struct{ *logstream.Store }

func (l hostLogs) Follow(ctx context.Context, id, server kurabe.InstanceID, open agent.OpenLog) error {
	return l.Store.Follow(ctx, id, server, open)
}

func (l hostLogs) Finish(ctx context.Context, id, server kurabe.InstanceID, open agent.OpenLog) error {
	log, err := open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	return l.Store.Finish(ctx, id, server, log)
}

// fetch is the engine's way to the log that a restore needs.
func (l hostLogs) fetch(ctx context.Context, r engine.FetchRequest) (logstream.Fetched, error) {
	return l.Fetch(ctx, r.Instance, r.From, r.TakenAt, r.At, r.Dir)
}
