package target

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

const (
	// templateTries: a session of a template that was told to end takes a moment.
	templateTries = 50
	templateEvery = 100 * time.Millisecond
	// reloadTime bounds how long a server may take to read its settings again.
	reloadTime = 10 * time.Second
	// dropForce is the version of PostgreSQL that can end the sessions of what it drops,
	// and copyFiles the one whose copies are by files only when asked to.
	dropForce, copyFiles = 13, 15
)

// Prepare implements Target. PostgreSQL copies a template for each trial; MariaDB and
// MySQL have none, and there fill makes the data for each.
func (t *urlTarget) Prepare(ctx context.Context, _ *study.Study, fill Fill) error {
	if err := t.makeNote(ctx); err != nil {
		return err
	}
	t.fill = fill
	switch {
	case t.inPlace():
		t.options.step("make the data in " + t.named)
		if err := t.fillPlace(ctx, fill); err != nil {
			return fmt.Errorf("make the data: %w", err)
		}
	case t.admin.Engine == study.Postgres:
		t.options.step("make the data")
		if err := t.create(ctx, t.goldenName(), ""); err != nil {
			return err
		}
		if err := fill(ctx, t.in(t.goldenName())); err != nil {
			return fmt.Errorf("make the data: %w", err)
		}
	}
	t.ready = true
	return nil
}

// create makes a database, of a template or empty.
func (t *urlTarget) create(ctx context.Context, name, template string) error {
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	text := "CREATE DATABASE " + dial.Ident(t.admin.Engine, name)
	if template == "" {
		if err := admin.Exec(ctx, text); err != nil {
			return fmt.Errorf("make a database: %w", err)
		}
		return nil
	}
	text += " TEMPLATE " + dial.Ident(t.admin.Engine, template)
	if t.major() >= copyFiles {
		// By files as before 15: a checkpoint before and after, so that no trial begins
		// with the log of the copy.
		text += " STRATEGY file_copy"
	}
	tick := time.NewTicker(templateEvery)
	defer tick.Stop()
	for range templateTries {
		if _, err := admin.Rows(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "+dial.Literal(t.admin.Engine, template)); err != nil {
			return fmt.Errorf("end the sessions of the template: %w", err)
		}
		err = admin.Exec(ctx, text)
		var answer *pgconn.PgError
		const objectInUse = "55006"
		if err == nil || !errors.As(err, &answer) || answer.Code != objectInUse {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	if err != nil {
		return fmt.Errorf("copy the data: %w", err)
	}
	return nil
}

// major is PostgreSQL's, 0 when unknown.
func (t *urlTarget) major() int {
	text, _, _ := strings.Cut(t.about.Version, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// drop removes a database with its sessions, and says whether there was one.
func (t *urlTarget) drop(ctx context.Context, admin *dial.Session, name string) (bool, error) {
	if ownName.FindString(name) == "" {
		return false, fmt.Errorf("drop database %s: the lab did not make it and does not touch it", name)
	}
	there, err := t.exists(ctx, admin, name)
	if err != nil || !there {
		return false, err
	}
	text := "DROP DATABASE IF EXISTS " + dial.Ident(t.admin.Engine, name)
	if t.admin.Engine == study.Postgres && t.major() >= dropForce {
		text += " WITH (FORCE)"
	} else if t.admin.Engine == study.Postgres {
		if _, err := admin.Rows(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "+dial.Literal(t.admin.Engine, name)); err != nil {
			return false, fmt.Errorf("end the sessions of %s: %w", name, err)
		}
	}
	return true, admin.Exec(ctx, text)
}

// Lease implements Target: the study's database made anew.
func (t *urlTarget) Lease(ctx context.Context, v study.Variant) (*Lease, error) {
	switch {
	case !t.ready:
		return nil, errors.New("lease a server: the data is not prepared")
	case t.leased:
		return nil, errors.New("lease a server: it is still leased")
	}
	t.leased = true
	lease, err := t.lease(ctx, v)
	if err != nil {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		return nil, errors.Join(err, t.release(closeCtx))
	}
	return lease, nil
}

func (t *urlTarget) lease(ctx context.Context, v study.Variant) (*Lease, error) {
	direct := t.in(t.own())
	if err := t.renew(ctx, direct); err != nil {
		return nil, err
	}
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := t.apply(ctx, admin, t.changes[v.Name]); err != nil {
		return nil, fmt.Errorf("variant %s: %w", v.Name, err)
	}
	session, err := dial.Open(ctx, direct) // anew: it begins with the database's parameters
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.Exec(ctx, statements(v, t.admin.Engine)...); err != nil {
		return nil, fmt.Errorf("SQL of variant %s: %w", v.Name, err)
	}
	have, err := t.inForce(ctx, session, v)
	if err != nil {
		return nil, err
	}
	lease := &Lease{Server: direct, Direct: direct, Settings: show(have)}
	end, err := t.endpoint(ctx, lease, v)
	if err != nil {
		return nil, err
	}
	lease.Release = func(ctx context.Context) error { return errors.Join(end(ctx), t.release(ctx)) }
	return lease, nil
}

// renew makes the study's database anew, with its data.
func (t *urlTarget) renew(ctx context.Context, direct dial.Server) error {
	if t.inPlace() {
		return nil
	}
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := t.drop(ctx, admin, t.own()); err != nil {
		return fmt.Errorf("drop the database of the trial before: %w", err)
	}
	if t.admin.Engine == study.Postgres {
		return t.create(ctx, t.own(), t.goldenName())
	}
	if err := t.create(ctx, t.own(), ""); err != nil {
		return err
	}
	if err := t.fill(ctx, direct); err != nil {
		return fmt.Errorf("make the data: %w", err)
	}
	return nil
}

// inForce waits until the server says what a variant wants: it reads its settings again
// in its own time.
func (t *urlTarget) inForce(ctx context.Context, session *dial.Session, v study.Variant) (map[string]setting, error) {
	deadline := time.Now().Add(reloadTime)
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	for {
		have, err := settings(ctx, session, t.admin.Engine)
		if err != nil {
			return nil, err
		}
		wrong := verify(have, v.Parameters)
		if wrong == nil {
			return have, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("variant %s is not in force: %w", v.Name, wrong)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// release puts back what of the whole server a variant changed.
func (t *urlTarget) release(ctx context.Context) error {
	t.leased = false
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = t.putBack(ctx, admin)
	return err
}

// Close implements Target.
func (t *urlTarget) Close(ctx context.Context) error {
	if !t.noted {
		return nil
	}
	ctx, cancel := closing(ctx)
	defer cancel()
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return fmt.Errorf("remove what the study made: %w; kurabe lab clean does it later", err)
	}
	defer admin.Close()
	if _, err := t.putBack(ctx, admin); err != nil {
		// The note has to stay: it is all that knows what to put back.
		return fmt.Errorf("put back what the study changed: %w; kurabe lab clean tries again", err)
	}
	if _, err := t.leavePlaces(ctx, admin); err != nil {
		return fmt.Errorf("%w; kurabe lab clean tries again", err)
	}
	for _, name := range []string{t.mark(), t.goldenName(), t.noteName()} {
		if _, err := t.drop(ctx, admin, name); err != nil {
			return fmt.Errorf("remove what the study made: %w; kurabe lab clean does it later", err)
		}
	}
	t.noted = false
	return nil
}
