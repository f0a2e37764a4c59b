package warden

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"kurabe/internal/netaddr"
	"kurabe/internal/proc"
)

const (
	// Killed processes have closed their connections within milliseconds. The addresses
	// stay so long, because a connection whose address is gone cannot be reset, and its
	// client would wait for it; and no longer, because a process that hangs in the kernel
	// keeps its connections.
	lastWords = 250 * time.Millisecond

	// Nothing may have appeared for quietTime: a fork that was on its way, a shim.
	quietTime  = 200 * time.Millisecond
	roundPause = 5 * time.Millisecond

	// lookMax is how long a disk that hangs may keep a fence from its end, which is only
	// the note; what needs no disk is killed from the first round on.
	lookMax = 2 * time.Second
	// fenceMax: what has not died by then hangs in the kernel, out of everybody's reach.
	fenceMax = time.Minute
)

// fence kills a server and takes its addresses, and says how it went.
func fence(tree *proc.Tree, addresses []netip.Addr) Note {
	began := time.Now()
	look := make(chan struct{})
	go func() { // nobody waits for it if the disk hangs
		_ = tree.Look() // what it could not see, the other marks show
		close(look)
	}()
	note, killed := Note{}, map[int]bool{}
	var quiet time.Time
	for round := 0; ; round++ {
		looked := closed(look) || time.Since(began) > lookMax // before the round that uses it
		found, left, err := killRound(tree)
		for _, pid := range found {
			killed[pid] = true
		}
		note.Killed = len(killed)
		if round == 0 {
			note.DeadMillis = time.Since(began).Milliseconds()
		}
		addresses = drop(addresses)
		if len(found) > 0 || left || round == 0 {
			quiet = time.Now()
		}
		if looked && err == nil && len(addresses) == 0 && time.Since(quiet) > quietTime {
			return note
		}
		if time.Since(began) > fenceMax {
			note.Left, note.LeftAddresses = found, addresses
			if err != nil {
				note.Error = err.Error()
			}
			return note
		}
		time.Sleep(roundPause)
	}
}

func killRound(tree *proc.Tree) (found []int, left bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	found, err = tree.Kill(ctx)
	return found, errors.Is(err, context.DeadlineExceeded), err
}

// drop returns those that are still there.
func drop(addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return netaddr.Drop(a) == nil })
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
