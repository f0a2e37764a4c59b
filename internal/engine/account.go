package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// What an account of the book is for: the first part of its name there.
const (
	forInstance = "instances/"
	forScratch  = "scratch/"
	forTemplate = "templates/"
)

// credential is an account of the book's.
func credential(id int) *proc.Credential {
	return &proc.Credential{UID: id, GID: id, Name: "kurabe-" + strconv.Itoa(id)}
}

// bookedAccount is the account of a name in the book of user ids.
func (l *Lifecycle) bookedAccount(name string) (*proc.Credential, bool) {
	if l.c.Accounts == nil || l.c.User == nil {
		return nil, false
	}
	e, ok := l.c.Accounts.Find(name)
	if !ok {
		return nil, false
	}
	return credential(e.ID), true
}

// Account is whom the files of an instance belong to, nil for ourselves. Of a home that the
// book does not have, its own files say it: an earlier version gave all to one account.
func (l *Lifecycle) Account(id kurabe.InstanceID) *proc.Credential {
	if user, ok := l.bookedAccount(forInstance + string(id)); ok || l.c.User == nil || l.c.Accounts == nil {
		return orUser(user, l.c.User)
	}
	info, err := volume.Lstat(l.Home(id).RunDir())
	if err != nil {
		return l.c.User
	}
	// Only root gives folders away.
	if of := volume.OwnerOf(info); of.UID > 0 && of.UID != l.c.User.UID {
		return credential(of.UID)
	}
	return l.c.User
}

func orUser(first, second *proc.Credential) *proc.Credential {
	if first != nil {
		return first
	}
	return second
}

// takeAccount gives a name of the book an account of its own, where that is done.
func (l *Lifecycle) takeAccount(name string) (*proc.Credential, error) {
	if !l.givesAccounts() {
		user, _ := l.bookedAccount(name)
		return orUser(user, l.c.User), nil
	}
	e, err := l.c.Accounts.Take(name, false)
	if err != nil {
		return nil, err
	}
	return credential(e.ID), nil
}

func (l *Lifecycle) givesAccounts() bool {
	return l.c.Accounts != nil && l.c.User != nil && !l.c.Accounts.Off()
}

// dropAccount ends what runs as the account of a name of which nothing is left, and gives
// the account back.
func (l *Lifecycle) dropAccount(ctx context.Context, name string) error {
	user, ok := l.bookedAccount(name)
	if !ok {
		return nil
	}
	if err := proc.KillOwned(ctx, user.UID); err != nil {
		return err
	}
	return l.c.Accounts.Release(name)
}

// SweepAccounts gives back the accounts of instances and of copies of which a death has left
// the entry alone. No step may be under way.
func (l *Lifecycle) SweepAccounts(ctx context.Context) error {
	if l.c.Accounts == nil || !exists(l.c.Homes) {
		return nil // The homes may be on a disk that is not there.
	}
	return l.c.Accounts.Sweep(ctx, func(name string) bool {
		if id, ok := strings.CutPrefix(name, forInstance); ok {
			return volume.Remains(filepath.Join(l.c.Homes, id))
		}
		if id, ok := strings.CutPrefix(name, forScratch); ok {
			return volume.Remains(filepath.Join(l.scratchDir(), id))
		}
		return true
	})
}

// otherAccount says whether the files of a home are to be another account's when its
// server starts next: those of a version that had one for all, or of a service that gives
// out none any more.
func (l *Lifecycle) otherAccount(i Instance) bool {
	if l.c.Accounts == nil || l.c.User == nil || !exists(i.Home.Dir) {
		return false
	}
	e, ok := l.c.Accounts.Find(forInstance + string(i.Instance))
	if l.c.Accounts.Off() {
		return ok || i.User.UID != l.c.User.UID
	}
	return !ok || e.Moving
}

// handOver gives the home of a server that does not run to the account that it is to have.
// The book says so first, so that a death in the midst of it is seen, and last that it is
// done.
func (l *Lifecycle) handOver(ctx context.Context, i Instance) error {
	if err := l.resting(ctx, i); err != nil {
		return fmt.Errorf("hand the files over: %w", err)
	}
	name, to := forInstance+string(i.Instance), l.c.User
	if l.givesAccounts() {
		e, err := l.c.Accounts.Take(name, true)
		if err != nil {
			return fmt.Errorf("hand the files over: %w", err)
		}
		to = credential(e.ID)
	}
	faultpoint.Reach("after", "take-account")
	err := volume.HandOver(i.Home.Dir, volume.Owner{UID: to.UID, GID: to.GID})
	if err == nil {
		err = volume.SyncFS(i.Home.Dir)
	}
	if err != nil {
		return fmt.Errorf("hand the files over: %w", err)
	}
	if l.givesAccounts() {
		return l.c.Accounts.Settle(name)
	}
	return l.c.Accounts.Release(name)
}

// resting refuses while anything works in the data.
func (l *Lifecycle) resting(ctx context.Context, i Instance) error {
	if exists(i.Home.DataDir()) {
		return l.endOtherProcesses(ctx, i)
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
	at := slices.Index(steps, StepStart)
	if !o.OtherAccount || at < 0 {
		return steps
	}
	return slices.Insert(steps, at, StepHandOver)
}
