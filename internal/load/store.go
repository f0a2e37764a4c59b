package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/tokenize"
)

const (
	fineTime   = 3 * time.Hour      // for which seconds are kept
	coarseTime = 7 * 24 * time.Hour // for which minutes are kept

	chunkSeconds = 10 // a crash loses the seconds of one chunk at most
	minuteKeys   = 200
	// sampleMax bounds the sessions of a sample that are told apart.
	sampleMax = 2000
)

// The files of a server's folder: fine ones for an hour, coarse ones and texts for a day (UTC).
const (
	fineForm   = "seconds-20060102-15"
	coarseForm = "minutes-20060102"
	textForm   = "texts-20060102"
	countForm  = "counts-20060102"
)

// Store holds the load of a host's servers.
type Store struct {
	dir  string
	mask bool
	tell func(kurabe.InstanceID, string)

	mu      sync.Mutex // guards servers
	servers map[kurabe.InstanceID]*server
}

// New returns the store in a folder. With mask, statements are kept without their literals
// only. What a crash left is read when its server is sampled or asked next; tell is told of what
// could not be read of a server, and why.
func New(dir string, mask bool, tell func(kurabe.InstanceID, string)) *Store {
	return &Store{dir: dir, mask: mask, tell: tell, servers: map[kurabe.InstanceID]*server{}}
}

// sweepEvery is how often what is too old is removed.
const sweepEvery = 5 * time.Minute

// Run removes what is too old until ctx ends, and then writes what is under way. A fault that
// fault is told of keeps nothing from its work.
func (s *Store) Run(ctx context.Context, now func() time.Time, fault func(error)) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Sweep(now()); err != nil {
			fault(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if err := s.Flush(); err != nil {
				fault(err)
			}
			return ctx.Err()
		}
	}
}

// server is one server's load. A server that is asked only has no chunks under way.
type server struct {
	dir string

	mu     sync.Mutex // guards the rest
	fine   *builder   // of chunkSeconds; nil: none is under way
	recent [2]*chunk  // the last that fine became, the older first: who looks each few seconds reads no file
	minute *builder   // of the minute that is under way
	hour   *builder   // of the full minutes of the hour
	texts  known
	latest Latest
	lost   error // what recover could not read
}

// server returns a server's load, which is read from its folder when it was not yet.
func (s *Store) server(id kurabe.InstanceID) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.servers[id]; have != nil {
		return have, nil
	}
	one := &server{dir: filepath.Join(s.dir, string(id))}
	if err := one.recover(); err != nil {
		s.tell(id, err.Error())
		return nil, fmt.Errorf("read the database load of %s: %w", id, err)
	}
	if one.lost != nil {
		s.tell(id, one.lost.Error())
		one.lost = nil
	}
	s.servers[id] = one
	return one, nil
}

func dialectOf(engine kurabe.EngineName) tokenize.Dialect {
	mysql := engine != kurabe.Postgres
	return tokenize.Dialect{MySQL: mysql, Backslash: mysql}
}

// Sample is all sessions of a server that were active at a moment.
type Sample struct {
	At       time.Time
	Engine   kurabe.EngineName
	Sessions []kurabe.ActiveSession
}

// Add takes in a sample. A second may have several, as where a clock was set back: it counts as
// sampled so many times, so that averages stay true.
func (s *Store) Add(id kurabe.InstanceID, sample Sample) error {
	one, err := s.server(id)
	if err != nil {
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	at := sample.At.Unix()
	lost := one.turn(at)
	one.latest = Latest{At: sample.At}
	one.fine.sampled[at-one.fine.start]++
	one.minute.sampled[0]++
	for n, session := range sample.Sessions {
		k, shown, err := one.key(session, dialectOf(sample.Engine), s.mask, at)
		lost = errors.Join(lost, err)
		if n < latestMax {
			one.latest.Sessions = append(one.latest.Sessions, shown)
		}
		if n >= sampleMax {
			k = k.coarse()
		}
		one.fine.add(at, k, 1)
		one.minute.add(at, k, 1)
	}
	return lost
}

// Latest is the sessions that were active at the newest sample of a server, at most latestMax.
type Latest struct {
	At       time.Time // zero: there was none since the service began
	Sessions []kurabe.ActiveSession
}

const latestMax = 500

// LatestKind is the question for Latest.
var LatestKind = hostread.Kind[kurabe.InstanceID, Latest]{Name: "load-latest", Class: hostread.Lag}

// Latest returns that of a server, with the statements as they are kept.
func (s *Store) Latest(_ context.Context, id kurabe.InstanceID) (Latest, error) {
	one, err := s.server(id)
	if err != nil {
		return Latest{}, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.latest, nil
}

// key is the dimensions of a session; the texts of its statements are kept. shown is the session
// with them.
func (s *server) key(session kurabe.ActiveSession, d tokenize.Dialect, mask bool, at int64) (k Key, shown kurabe.ActiveSession, err error) {
	text := textOf(session.Statement, session.NativeID, d, mask)
	k = Key{
		WaitType: clip(session.WaitType, nameMax), Wait: clip(session.Wait, nameMax),
		User: clip(session.User, nameMax), Host: clip(session.Host, nameMax), Database: clip(session.Database, nameMax),
		Application: clip(session.Application, nameMax), Kind: clip(session.Kind, nameMax),
		BlockingUser: clip(session.BlockerUser, nameMax),
	}
	kept, err := s.keep(at, text)
	k[Statement], k[Tokenized] = kept.ID, kept.TokenizedID
	session.Statement = text.Statement
	if session.Blocker != 0 {
		by := textOf(session.BlockerStatement, "", d, true)
		blocking, failed := s.keep(at, by)
		k[BlockingTokenized], err = blocking.TokenizedID, errors.Join(err, failed)
		session.BlockerStatement = by.Statement
	}
	return k, session, err
}

// turn writes the chunks that end before a moment, and begins those in which it lies.
func (s *server) turn(at int64) error {
	const minute, hour = 60, 3600
	var errs []error
	if s.fine != nil && s.fine.start != at-at%chunkSeconds {
		errs = append(errs, s.writeFine())
	}
	if s.fine == nil {
		s.fine = newBuilder(at-at%chunkSeconds, 1, chunkSeconds)
	}
	if s.minute != nil && s.minute.start != at-at%minute {
		s.endMinute()
	}
	if s.hour != nil && s.hour.start != at-at%hour {
		errs = append(errs, s.writeHour())
	}
	if s.minute == nil {
		s.minute = newBuilder(at-at%minute, minute, 1)
	}
	if s.hour == nil {
		s.hour = newBuilder(at-at%hour, minute, hour/minute)
	}
	return errors.Join(errs...)
}

// endMinute takes the minute into its hour, its smaller keys as one.
func (s *server) endMinute() {
	c := s.minute.chunk(minuteKeys)
	s.minute = nil
	n := (c.start - s.hour.start) / s.hour.step
	s.hour.sampled[n] += c.slots[0].sampled
	for _, r := range c.slots[0].rows {
		s.hour.add(c.start, c.key(r.key), r.count)
	}
}

// writeFine and writeHour write a chunk and forget it: what cannot be written is lost, and the
// next chunk is not held up by it.
func (s *server) writeFine() error {
	c := s.fine.chunk(keysMax)
	s.fine, s.recent = nil, [2]*chunk{s.recent[1], c}
	return s.append(name(fineForm, c.start), frame(c.encode()))
}

func (s *server) writeHour() error {
	c := s.hour.chunk(keysMax)
	s.hour = nil
	return s.append(name(coarseForm, c.start), frame(c.encode()))
}

func name(form string, at int64) string { return time.Unix(at, 0).UTC().Format(form) }

// append writes a frame at the end of a file. A frame that was written in part is cut off.
func (s *server) append(file string, frame []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Seek(0, 2)
	if err != nil {
		return err
	}
	if _, err := f.Write(frame); err != nil {
		return errors.Join(err, f.Truncate(before))
	}
	return nil
}

// Flush writes what is under way, at the end of the service. The minutes of the hour that is
// not over are made again from their seconds.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, one := range s.servers {
		one.mu.Lock()
		if one.fine != nil {
			errs = append(errs, one.writeFine())
		}
		one.mu.Unlock()
	}
	return errors.Join(errs...)
}

// end writes what is under way of a server that is not sampled any more, once its hour is over.
func (s *server) end(now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.fine != nil && s.fine.start+2*chunkSeconds < now {
		errs = append(errs, s.writeFine())
	}
	if s.hour != nil && s.hour.start+2*3600 < now {
		if s.minute != nil {
			s.endMinute()
		}
		errs = append(errs, s.writeHour())
	}
	return errors.Join(errs...)
}

// Sweep ends the hours of servers that are not sampled any more, and removes what is too old, and the folders of servers that have nothing left.
func (s *Store) Sweep(now time.Time) error {
	servers, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range servers {
		dir := filepath.Join(s.dir, e.Name())
		if one, err := s.server(kurabe.InstanceID(e.Name())); err != nil {
			errs = append(errs, err)
		} else {
			errs = append(errs, one.end(now.Unix()))
		}
		files, err := os.ReadDir(dir)
		errs = append(errs, err)
		left := len(files)
		for _, f := range files {
			if ended, keep, ok := fileTime(f.Name()); ok && now.Sub(ended) > keep {
				errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
				left--
			}
		}
		if left > 0 {
			continue
		}
		s.mu.Lock()
		// A folder that has got a file meanwhile is not removed by Remove.
		if err := os.Remove(dir); err == nil {
			delete(s.servers, kurabe.InstanceID(e.Name()))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// fileTime returns when the time of a file ends, and for how long it is kept then.
func fileTime(file string) (ended time.Time, keep time.Duration, ok bool) {
	for _, each := range []struct {
		form       string
		long, keep time.Duration
	}{
		{fineForm, time.Hour, fineTime},
		{coarseForm, 24 * time.Hour, coarseTime},
		{textForm, 24 * time.Hour, coarseTime},
		{countForm, 24 * time.Hour, coarseTime},
	} {
		if at, err := time.Parse(each.form, file); err == nil {
			return at.Add(each.long), each.keep, true
		}
	}
	return time.Time{}, 0, false
}
