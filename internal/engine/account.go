package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Names in the book of accounts are paths below the service's folder, so that whoever
// reads the book sees by the folder whether a name is needed any more.
func (l *Lifecycle) accountName(dir string) string {
	return filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
}

// credential is an account of the book's.
func credential(id int) *proc.Credential {
	return &proc.Credential{UID: id, GID: id, Name: "kurabe-" + strconv.Itoa(id)}
}

// account is whose a folder is: its own, or else the one that all had who came before
// there were any.
func (l *Lifecycle) account(dir string) (_ *proc.Credential, own bool) {
	if l.c.Accounts == nil || l.c.User == nil {
		return l.c.User, false
	}
	e, ok := l.c.Accounts.Find(l.accountName(dir))
	if !ok {
		return l.c.User, false
	}
	return credential(e.ID), true
}

// Account is whom the files of an instance belong to, nil for ourselves.
func (l *Lifecycle) Account(id kurabe.InstanceID) *proc.Credential {
	user, _ := l.account(l.Home(id).Dir)
	return user
}

// takeAccount gives a folder that is about to be made an account of its own.
func (l *Lifecycle) takeAccount(dir string) (*proc.Credential, error) {
	if !l.givesAccounts() {
		user, _ := l.account(dir)
		return user, nil
	}
	e, err := l.c.Accounts.Take(l.accountName(dir), false)
	if err != nil {
		return nil, err
	}
	return credential(e.ID), nil
}

func (l *Lifecycle) givesAccounts() bool {
	return l.c.Accounts != nil && l.c.User != nil && !l.c.Accounts.Off()
}

// dropAccount ends what runs as the account of a folder that is gone, and gives it back.
func (l *Lifecycle) dropAccount(ctx context.Context, dir string) error {
	user, own := l.account(dir)
	if !own {
		return nil
	}
	if err := proc.KillOwned(ctx, user.UID); err != nil {
		return err
	}
	return l.c.Accounts.Release(l.accountName(dir))
}

// otherAccount says whether the files of a home are to be another account's when its
// server starts next: those of a version that had one for all, or of a service that gives
// out none any more.
func (l *Lifecycle) otherAccount(h Home) bool {
	if l.c.Accounts == nil || l.c.User == nil {
		return false
	}
	e, ok := l.c.Accounts.Find(l.accountName(h.Dir))
	if l.c.Accounts.Off() {
		return ok
	}
	return exists(h.Dir) && (!ok || e.Moving)
}

// handOver gives the home of a server that does not run to the account that it is to have.
// The book says so first, so that a death in the midst of it is seen, and last that it is
// done.
func (l *Lifecycle) handOver(ctx context.Context, i Instance) error {
	if err := l.resting(ctx, i); err != nil {
		return fmt.Errorf("hand the files over: %w", err)
	}
	name := l.accountName(i.Home.Dir)
	to := l.c.User
	if !l.c.Accounts.Off() {
		e, err := l.c.Accounts.Take(name, true)
		if err != nil {
			return fmt.Errorf("hand the files over: %w", err)
		}
		to = credential(e.ID)
	}
	faultpoint.Reach("after", "take-account")
	dir, err := volume.Resolve(i.Home.Dir) // of a pool it is a link of ours
	if err == nil {
		err = volume.HandOver(dir, volume.Owner{UID: to.UID, GID: to.GID})
	}
	if err == nil {
		err = volume.SyncFS(dir)
	}
	if err != nil {
		return fmt.Errorf("hand the files over: %w", err)
	}
	if l.c.Accounts.Off() {
		return l.c.Accounts.Release(name)
	}
	return l.c.Accounts.Settle(name)
}

// resting refuses while anything works in the data.
func (l *Lifecycle) resting(ctx context.Context, i Instance) error {
	if exists(i.Home.DataDir()) {
		return l.alone(ctx, i)
	}
	return nil
}

// Seclude is the machine of its own that a server without clients gets, with the folders
// that are given and the programs that are shown to it; nil where the service may not make
// one.
func Seclude(user *proc.Credential, show []string, give ...string) *proc.Seclusion {
	if user == nil || proc.Secludes() != nil {
		return nil
	}
	return &proc.Seclusion{Show: show, Give: give}
}

// beforeStart puts the step that hands the files over before the one that runs programs
// as their owner.
func beforeStart(steps []StepName, o Observation) []StepName {
	if !o.OtherAccount {
		return steps
	}
	for n, s := range steps {
		if s == StepStart {
			return append(append(append([]StepName{}, steps[:n]...), StepHandOver), steps[n:]...)
		}
	}
	return steps
}
