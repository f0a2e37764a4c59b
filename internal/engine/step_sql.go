package engine

import (
	"context"
	"fmt"
	"path/filepath"
)

// ensureMaster makes the master user and the initial database. Data that came from elsewhere
// has its users: of these nothing is made, unless somebody has asked for a password since.
func (l *Lifecycle) ensureMaster(ctx context.Context, i Instance) error {
	if err := l.c.Driver.EnsureMaster(ctx, i); err != nil {
		return fmt.Errorf("make the master user: %w", err)
	}
	// A password that changed before the user existed went in with it; one that
	// changed while an earlier try was cut off is set again.
	if !i.Password.Inherited {
		if err := l.c.Driver.SetPassword(ctx, i); err != nil {
			return fmt.Errorf("make the master user: %w", err)
		}
	}
	return note(i.Home, func(a *Applied) { a.Master, a.PasswordSeq, a.PasswordNoted = true, i.Password.Seq, true })
}

// setPassword gives the master user the password that was asked for, unless the data says
// that it has had it: then it may have another one by now, and fewer rights, by SQL.
func (l *Lifecycle) setPassword(ctx context.Context, i Instance) error {
	applied, err := readApplied(i.Home)
	switch {
	case err != nil:
		return err
	case i.Password.Inherited:
	case applied.PasswordSeq >= i.Password.Seq:
		err = l.c.Driver.NotePassword(ctx, i)
	default:
		err = l.c.Driver.SetPassword(ctx, i)
	}
	if err != nil {
		return fmt.Errorf("set the master password: %w", err)
	}
	return note(i.Home, func(a *Applied) { a.PasswordSeq, a.PasswordNoted = i.Password.Seq, true })
}

// reload makes settings and certificate on disk true of the running server.
func (l *Lifecycle) reload(ctx context.Context, i Instance) error {
	if err := l.fits(i); err != nil { // some are taken by a running server as well
		return err
	}
	loaded := fingerprint(l.c.Driver.Render(i), i.Home)
	if err := noteReload(i); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := l.c.Driver.Reload(ctx, i); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := forgetWaits(i); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return note(i.Home, func(a *Applied) {
		a.Loaded = loaded
		a.obeys(i.Role)
	})
}

// probe logs in over the advertised endpoint and writes, as a client would:
// nothing is called available before.
func (l *Lifecycle) probe(ctx context.Context, i Instance) error {
	if err := l.c.Driver.Probe(ctx, i, filepath.Join(i.Home.TLSDir(), authorityFile)); err != nil {
		return fmt.Errorf("log in over the endpoint: %w", err)
	}
	return note(i.Home, func(a *Applied) { a.Probed = true })
}
