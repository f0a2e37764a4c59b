package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kurabe/internal/must"
)

const (
	// leaseSeconds is how long a dead holder blocks the next one. etcd refuses less than
	// 1.5 times its own election timeout, in whole seconds: 2 s among several nodes.
	//
	// What it adds up to when the machine of the planner is lost together with that of a
	// writer: up to 3 s of this lease, up to 0.5 s until etcd looks at it, then the 5 s of
	// silence (hostlink) that the new planner counts from its election: 5.5 to 8.5 s until
	// that writer is known to be lost. It is longer where etcd's leader is lost too, which
	// TransferLeader keeps on another machine than the planner's: 1 to 2 s until there is
	// another one, which counts the lease anew, with an election timeout of 1 s on top:
	// 10 to 12 s.
	leaseSeconds = 3
	// renewEvery leaves room for two renewals that are lost.
	renewEvery = time.Second
	// renewTimeout bounds one of them, renewPause is how soon a failed one is tried again.
	renewTimeout = time.Second
	renewPause   = 100 * time.Millisecond
	// electTimeout bounds one attempt to write at an election.
	electTimeout = time.Second
	// resignTimeout bounds giving an election back; the lease ends it anyway.
	resignTimeout = time.Second
)

// Leadership is an election that was won. Key was written last at Revision and
// stays so exactly as long as the leadership holds: a transaction that compares
// the two cannot be committed by a leader that was deposed without noticing.
type Leadership struct {
	Key      string
	Revision int64

	client *clientv3.Client
	lease  clientv3.LeaseID
	until  atomic.Int64 // of bootTime: when the lease has run out if no renewal arrived since
	lost   chan struct{}
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Elect is Elect of this node.
func (n *Node) Elect(ctx context.Context, key, id string) (*Leadership, error) {
	return Elect(ctx, n.client, key, id)
}

// Elect waits until id holds the key, and keeps it until Resign, until ctx ends
// or until the lease is lost. Ids are unique among living processes: a holder
// with our own id is our former life, killed before its lease ran out, and is
// followed at once.
func Elect(ctx context.Context, client *clientv3.Client, key, id string) (*Leadership, error) {
	var grant *clientv3.LeaseGrantResponse
	var sent time.Duration
	err := again(ctx, func(ctx context.Context) (err error) {
		sent = bootTime()
		grant, err = client.Grant(ctx, leaseSeconds)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("elect %s: %w", key, err)
	}
	kctx, stop := context.WithCancel(ctx)
	l := &Leadership{Key: key, client: client, lease: grant.ID, lost: make(chan struct{}), stop: stop}
	l.renewed(sent)
	l.done.Go(func() {
		defer close(l.lost)
		l.renew(kctx)
		l.until.Store(0)
	})
	for l.Revision == 0 {
		if err := l.campaign(kctx, id); err != nil {
			return nil, errors.Join(fmt.Errorf("elect %s: %w", key, err), l.Resign())
		}
	}
	return l, nil
}

// again repeats what may be done twice while etcd has no leader, or is not reached: it drops
// what it is told then, and lets the caller wait for seven seconds.
func again(ctx context.Context, do func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, electTimeout)
		err := do(attempt)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case status.Code(err) == codes.Unavailable || errors.Is(err, rpctypes.ErrNoLeader): // told at once
			select {
			case <-time.After(renewPause):
			case <-ctx.Done():
			}
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// renew keeps the lease until ctx ends, or the lease has run out by our own clock.
func (l *Leadership) renew(ctx context.Context) {
	pause := renewEvery
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		sent := bootTime()
		attempt, cancel := context.WithTimeout(ctx, renewTimeout)
		_, err := l.client.KeepAliveOnce(attempt, l.lease)
		cancel()
		pause = renewEvery
		if err == nil {
			l.renewed(sent)
		} else {
			pause = renewPause
		}
		if errors.Is(err, rpctypes.ErrLeaseNotFound) || !l.Valid() {
			return
		}
	}
}

// renewed notes a renewal that was sent then and has arrived: etcd counts from later.
func (l *Leadership) renewed(sent time.Duration) {
	l.until.Store(int64(sent + leaseSeconds*time.Second))
}

// Valid says that nobody else can have been elected yet: the lease has not run out,
// counted from when its last renewal was sent, by a clock that goes on while the machine
// sleeps. It is false from the moment that Resign was called.
func (l *Leadership) Valid() bool { return int64(bootTime()) < l.until.Load() }

// bootTime is the kernel's time since the start of the machine.
func bootTime() time.Duration {
	var t unix.Timespec
	must.True(unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) == nil, "the kernel has a clock")
	return time.Duration(t.Nano())
}

// campaign tries to take the key once and else waits until its holder is gone.
func (l *Leadership) campaign(ctx context.Context, id string) error {
	put := clientv3.OpPut(l.Key, id, clientv3.WithLease(l.lease))
	var r *clientv3.TxnResponse
	err := again(ctx, func(ctx context.Context) (err error) {
		r, err = l.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(l.Key), "=", 0)).
			Then(put).Else(clientv3.OpGet(l.Key)).Commit()
		return err
	})
	if err != nil {
		return err
	}
	if r.Succeeded {
		l.Revision = r.Header.Revision
		return nil
	}
	held := r.Responses[0].GetResponseRange().Kvs[0]
	if string(held.Value) == id {
		r, err := l.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(l.Key), "=", held.ModRevision)).
			Then(put).Commit()
		if err == nil && r.Succeeded {
			l.Revision = r.Header.Revision
		}
		return err
	}
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the wait
		select {
		case <-l.lost:
			cancel()
		case <-wctx.Done():
		}
	}()
	watch := make(chan clientv3.WatchResponse)
	go func() { // the node may hang, and say nothing of an end
		defer close(watch)
		for w := range l.client.Watch(wctx, l.Key, clientv3.WithRev(held.ModRevision+1)) {
			select {
			case watch <- w:
			case <-wctx.Done():
				return
			}
		}
	}()
	for wctx.Err() == nil {
		var w clientv3.WatchResponse
		open := false
		select {
		case w, open = <-watch:
		case <-wctx.Done():
		}
		if !open {
			break
		}
		if err := w.Err(); err != nil || len(w.Events) > 0 {
			return err
		}
	}
	return errors.Join(ctx.Err(), errors.New("the wait for the holder has ended"))
}

// Lost closes when the leadership may be over. The fence is the proof; this is
// for stopping work early.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Resign gives the leadership back, so that the next one need not wait for the
// lease.
func (l *Leadership) Resign() error {
	l.stop()
	l.done.Wait() // from here on Valid is false, before the next one can be elected
	ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
	defer cancel()
	if _, err := l.client.Revoke(ctx, l.lease); err != nil {
		return fmt.Errorf("resign %s: %w", l.Key, err)
	}
	return nil
}
