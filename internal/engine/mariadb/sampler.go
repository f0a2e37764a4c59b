package mariadb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/activity"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/volume"
)

// sampler reads metrics over one session, which the server counts as none.
type sampler struct {
	admin   *guard.Session
	dataDir string
	reader  *activity.Reader // nil: sessions were not asked for yet
	files   time.Time        // when the binary logs were looked at last
}

// filesEvery is how often the files of the binary log are added up.
const filesEvery = 10 * time.Second

// deadlocksSQL: SHOW, see guard.Threads.
const deadlocksSQL = "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"

// OpenSampler implements engine.Driver.
func (d *Driver) OpenSampler(ctx context.Context, i engine.Instance) (engine.Sampler, error) {
	a, err := guard.Open(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open sampler: %w", err)
	}
	return &sampler{admin: a, dataDir: i.Home.DataDir()}, nil
}

// Close implements engine.Sampler.
func (s *sampler) Close() { _ = s.admin.Close() } // whatever it says, the session is gone

// Sample implements engine.Sampler.
func (s *sampler) Sample(ctx context.Context) ([]sample.Value, error) {
	rows, err := s.admin.Query(ctx, deadlocksSQL)
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	if len(rows) != 1 {
		return nil, errors.New("sample: the server does not count deadlocks")
	}
	deadlocks, err := strconv.ParseFloat(rows[0][1], 64)
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	clients, err := s.clients(ctx)
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	values := []sample.Value{
		{Metric: "DatabaseConnections", Value: float64(clients)},
		{Metric: "Deadlocks", Kind: sample.Increase, Value: deadlocks},
	}
	if now := time.Now(); now.Sub(s.files) >= filesEvery {
		bytes, err := binlogBytes(s.dataDir)
		if err != nil {
			return nil, fmt.Errorf("sample: %w", err)
		}
		s.files = now
		values = append(values, sample.Value{Metric: "BinLogDiskUsage", Value: float64(bytes)})
	}
	return values, nil
}

// listedMax is the age of a process list that is not read again: sessions are listed once a
// second where load is kept.
const listedMax = 1500 * time.Millisecond

// clients counts the sessions of clients: neither the server's own threads nor those of members,
// copies and probes of the service.
func (s *sampler) clients(ctx context.Context) (n int, err error) {
	if s.reader != nil && time.Since(s.reader.Listed) < listedMax {
		return s.reader.Clients, nil
	}
	threads, err := guard.Threads(ctx, s.admin)
	for _, t := range threads {
		if guard.OfClient(t.User, t.Command) && !ofService(t.User) {
			n++
		}
	}
	return n, err
}

// ofService says whether an account is one of the service's: a member's, a copy's or a probe's.
func ofService(user string) bool {
	return strings.HasPrefix(user, conf.ProbePrefix) || role.MemberForm.MatchString(user) || strings.HasPrefix(user, replica.CopierPrefix)
}

// Sessions implements engine.Sampler.
func (s *sampler) Sessions(ctx context.Context) ([]kurabe.ActiveSession, error) {
	if s.reader == nil {
		reader, err := activity.NewReader(ctx, s.admin, ofService)
		if err != nil {
			return nil, err
		}
		s.reader = reader
	}
	return s.reader.List(ctx)
}

// Statements implements engine.Sampler: only the performance schema, which is off, counts them.
func (s *sampler) Statements(context.Context) ([]kurabe.StatementCounts, time.Duration, error) {
	return nil, 0, nil
}

// binlogBytes is the size of the binary logs. One that is purged meanwhile counts as none.
func binlogBytes(dataDir string) (bytes int64, err error) {
	names, err := binlog.List(dataDir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if info, err := volume.Lstat(filepath.Join(dataDir, name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes, nil
}
