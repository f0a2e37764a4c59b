package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
)

// maxLogLines is the most lines of one portion, as on RDS.
const maxLogLines = 10_000

// LogSource reads the engine logs of servers, from the host that runs them: the id is
// that of an instance's only server, or of one of its group.
type LogSource interface {
	List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) ([]kurabe.LogFile, error)
	Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (kurabe.LogPortion, error)
}

// LogFilter narrows a list of log files; zero fields match everything.
type LogFilter struct {
	Contains     string
	LargerThan   *int64    // bytes
	WrittenSince time.Time // inclusive
}

// logged is the server whose log files users see of an instance.
func (i Instance) logged() kurabe.InstanceID {
	switch {
	case i.Server != nil:
		return i.Server.ID
	case i.Group != nil:
		return i.Group.Primary
	}
	return i.Spec.ID
}

// LogFiles lists the log files of the server that clients speak with, by name. A standby's
// are not shown, as on RDS: after a failover they are those of the other server.
func (c *Control) LogFiles(ctx context.Context, instance string, f LogFilter) ([]kurabe.LogFile, error) {
	i, err := c.Instance(instance)
	if err != nil {
		return nil, err
	}
	if c.Logs == nil {
		return nil, nil
	}
	list, err := c.Logs.List(ctx, i.logged(), i.Spec.Engine)
	if err != nil {
		return nil, fmt.Errorf("list log files: %w", err)
	}
	list = slices.DeleteFunc(list, func(l kurabe.LogFile) bool {
		return !strings.Contains(l.Name, f.Contains) || f.LargerThan != nil && l.SizeBytes <= *f.LargerThan ||
			!f.WrittenSince.IsZero() && l.LastWritten.Before(f.WrittenSince)
	})
	slices.SortFunc(list, func(a, b kurabe.LogFile) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// LogPortion returns a piece of a log file: from a marker on ("0" is the
// beginning), or its last lines when marker is "". lines is how many at most,
// nil for as many as a portion takes.
func (c *Control) LogPortion(ctx context.Context, instance, file, marker string, lines *int) (kurabe.LogPortion, error) {
	i, err := c.Instance(instance)
	if err != nil {
		return kurabe.LogPortion{}, err
	}
	if c.Logs == nil {
		return kurabe.LogPortion{}, kurabe.Errorf(kurabe.CodeLogFileNotFound, "DBLog File: %s, is not found on the DB instance", file)
	}
	count := intOr(lines, maxLogLines)
	if count < 1 {
		return kurabe.LogPortion{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "NumberOfLines must be at least 1, not %d", count)
	}
	portion, err := c.Logs.Read(ctx, i.logged(), i.Spec.Engine, file, marker, min(count, maxLogLines))
	if err != nil {
		return kurabe.LogPortion{}, fmt.Errorf("read log file: %w", err)
	}
	return portion, nil
}
