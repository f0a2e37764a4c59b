package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"kurabe"
)

// fleetLoss is what the loss of a host did to the groups that it had servers of, as the fleet's
// service answers it. Times are in milliseconds.
type fleetLoss struct {
	Host     kurabe.HostID `json:"host"`
	Standbys int           `json:"standbys"` // of other groups, lost with it
	// KnownMs is from the end of all words of the host until the planner may know that it is
	// lost, TotalMs until the last group was decided.
	KnownMs float64 `json:"knownMs"`
	TotalMs float64 `json:"totalMs"`
	// DecidedMs are of the groups whose writer it had, from KnownMs on until the record names
	// another.
	DecidedMs []float64 `json:"decidedMs"`
}

// obey is the service's side: hosts join at one signal, and one is lost at each of another.
func (f *fleetLink) obey(ctx context.Context, out io.Writer) {
	orders := make(chan os.Signal, 1)
	signal.Notify(orders, fleetJoin, fleetStrike)
	defer signal.Stop(orders)
	defer func() {
		for _, h := range f.hosts {
			h.switchOff(nil)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case order := <-orders:
			answer, err := f.obeyOne(ctx, order)
			if err != nil {
				answer = fleetFailed + err.Error()
			}
			fmt.Fprintln(out, answer)
		}
	}
}

func (f *fleetLink) obeyOne(ctx context.Context, order os.Signal) (string, error) {
	if order == fleetJoin {
		return fleetJoined, f.join(ctx)
	}
	loss, err := f.lose(ctx)
	if err != nil {
		return "", err
	}
	answer, err := json.Marshal(loss)
	return fleetStruck + string(answer), err
}

// groups are the writers that a host has, by their instance, and how many groups it has a
// standby of. Only groups whose standby has every commit count: no other can be decided.
func (f *fleetLink) groups(id kurabe.HostID) (writers map[kurabe.InstanceID]kurabe.InstanceID, standbys int) {
	writers = map[kurabe.InstanceID]kurabe.InstanceID{}
	for _, i := range f.view.Instances() {
		if i.Group == nil || len(i.Group.SyncSet) == 0 {
			continue
		}
		for _, m := range i.Group.Members {
			switch {
			case m.Host != id:
			case m.ID == i.Group.Primary:
				writers[i.ID] = m.ID
			default:
				standbys++
			}
		}
	}
	return writers, standbys
}

// most is the host with most writers, of several that which was not lost for longest.
func (f *fleetLink) most() (h *farHost) {
	count := -1
	for _, other := range f.hosts {
		writers, _ := f.groups(other.id)
		if len(writers) > count || len(writers) == count && other.boots < h.boots {
			h, count = other, len(writers)
		}
	}
	return h
}

// lose switches off the host with most writers until each of their groups is decided.
func (f *fleetLink) lose(ctx context.Context) (*fleetLoss, error) {
	h := f.most()
	if h == nil {
		return nil, errors.New("no host has joined")
	}
	wake, stop := f.view.Subscribe()
	defer stop()
	writers, standbys := f.groups(h.id)
	servers, _ := f.view.Assigned(h.id)
	began := time.Now()
	h.switchOff(servers)
	decided, err := f.decided(ctx, writers, wake)
	said, _ := f.view.Presence(h.id)
	h.switchOn()
	if err != nil {
		return nil, err
	}
	if !said.Lost {
		return nil, fmt.Errorf("%s was heard again", h.id)
	}
	return judgeFleet(fleetLoss{Host: h.id, Standbys: standbys}, began, said.Since, decided), nil
}

// decided is when each group's record names another writer than it had.
func (f *fleetLink) decided(ctx context.Context, writers map[kurabe.InstanceID]kurabe.InstanceID, wake <-chan struct{}) (decided []time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, fleetTime)
	defer cancel()
	for len(writers) > 0 {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d groups are not decided", len(writers))
		case <-wake:
		}
		now := time.Now()
		for id, was := range writers {
			if i, ok := f.view.Instance(id); ok && i.Group != nil && i.Group.Primary != was {
				decided = append(decided, now)
				delete(writers, id)
			}
		}
	}
	return decided, nil
}

// judgeFleet puts moments into the terms of the bar. A host is lost kurabe.HostLostAfter after its
// last word, by the service's own clock; what it takes to look, to write that down and to read
// it is the planner's time.
func judgeFleet(l fleetLoss, began, lastWord time.Time, decided []time.Time) *fleetLoss {
	known := lastWord.Add(kurabe.HostLostAfter)
	l.KnownMs = milliseconds(known.Sub(began))
	for _, at := range decided {
		l.DecidedMs = append(l.DecidedMs, milliseconds(at.Sub(known)))
		l.TotalMs = max(l.TotalMs, milliseconds(at.Sub(began)))
	}
	return &l
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
