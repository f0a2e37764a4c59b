package engine

import (
	"context"
	"fmt"
	"path/filepath"
)

// ensureMaster makes the master user and the initial database.
func (l *Lifecycle) ensureMaster(ctx context.Context, i Instance) error {
	if err := l.c.Driver.EnsureMaster(ctx, i); err != nil {
		return fmt.Errorf("make the master user: %w", err)
	}
	// A password that changed before the user existed went in with it; one that
	// changed while an earlier try was cut off is set again.
	if err := l.c.Driver.SetPassword(ctx, i); err != nil {
		return fmt.Errorf("make the master user: %w", err)
	}
	return note(i.Home, func(a *Applied) { a.Master, a.PasswordSeq = true, i.Password.Seq })
}

func (l *Lifecycle) setPassword(ctx context.Context, i Instance) error {
	if err := l.c.Driver.SetPassword(ctx, i); err != nil {
		return fmt.Errorf("set the master password: %w", err)
	}
	return note(i.Home, func(a *Applied) { a.PasswordSeq = i.Password.Seq })
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
