package api

import (
	"context"
	"log/slog"
	"net/http"

	"kurabe/internal/aws/fault"
	"kurabe/internal/logkey"
)

// log writes the one line of a finished request: Debug for a read that went
// well, Error when we failed somebody who is still there, Info for the rest.
func (s *Server) log(ctx context.Context, c *call, f *fault.Fault) {
	level := slog.LevelInfo
	switch {
	case f == nil && c.reads:
		level = slog.LevelDebug
	case f != nil && f.Status == http.StatusInternalServerError && ctx.Err() == nil:
		level = slog.LevelError
	}
	if !s.config.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String(logkey.RequestID, c.id),
		slog.String(logkey.Action, c.name()),
		slog.String(logkey.User, c.accessKeyID),
		slog.Int(logkey.Status, c.status),
		slog.Int64(logkey.DurationMS, s.config.Now().Sub(c.started).Milliseconds()),
	}
	if f != nil {
		attrs = append(attrs, slog.String(logkey.Code, f.Code), slog.String(logkey.Error, c.err.Error()))
	}
	s.config.Log.LogAttrs(ctx, level, "request finished", attrs...)
}

// name is the action as policies write it, "rds:CreateDBInstance". A client may
// send any text for an action that we do not know, so that is cut.
func (c *call) name() string {
	const most = 100
	action := c.action[:min(most, len(c.action))]
	if c.service == nil {
		return action
	}
	return c.service.Name + ":" + action
}
