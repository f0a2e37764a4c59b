package scratch

import (
	"context"
	"errors"
	"syscall"
	"time"

	"kurabe/internal/daemon"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
)

// Server is a server in a folder that only the service can reach.
type Server struct {
	Folder
	Daemon  daemon.Daemon // its files; where it sees the folder is the folder's
	Process proc.Process  // of the last start
	// Signal ends the server at once; after Grace it is killed.
	Signal syscall.Signal
	Grace  time.Duration
	// Ended says why the server ended by itself, in its own words.
	Ended func() error
}

// End ends the server at once, also one of an earlier service.
func (s *Server) End(ctx context.Context) error { return s.Daemon.Kill(ctx, s.Signal, s.Grace, nil) }

// Close ends the server, if it still runs, has the driver remove its files and closes the
// folder. It has time of its own, as the caller's may be over.
func (s *Server) Close(remove func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*s.Grace)
	defer cancel()
	return errors.Join(s.End(ctx), remove(), s.Folder.Close())
}

// Start starts the server; spec says what it is. Without an environment it has Env's.
func (s *Server) Start(ctx context.Context, spec proc.Spec) (err error) {
	s.Daemon.From, s.Daemon.Seen = s.Dir, s.Seen(s.Dir)
	spec.User, spec.Cgroups, spec.Seclude = s.User, s.Cgroups, s.seclude()
	if spec.Env == nil {
		spec.Env = Env()
	}
	if s.Process, err = s.Daemon.Start(ctx, spec); err == nil {
		faultpoint.Reach("after", "start-private")
	}
	return err
}

// Await waits until the server meets a condition; an error of met is final. Of a server that
// ended before, it returns Ended's.
func (s *Server) Await(ctx context.Context, met func() (bool, error)) error {
	err := daemon.Await(ctx, s.Process, met)
	if errors.Is(err, daemon.ErrEnded) {
		return s.Ended()
	}
	return err
}
