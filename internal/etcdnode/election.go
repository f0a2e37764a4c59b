package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaseSeconds is how long a dead holder blocks the next one. A living one
// renews it three times in that time.
const leaseSeconds = 10

// resignTimeout bounds giving an election back; the lease ends it anyway.
const resignTimeout = time.Second

// Leadership is an election that was won. Key was written last at Revision and
// stays so exactly as long as the leadership holds: a transaction that compares
// the two cannot be committed by a leader that was deposed without noticing.
type Leadership struct {
	Key      string
	Revision int64

	client *clientv3.Client
	lease  clientv3.LeaseID
	lost   chan struct{}
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Elect waits until id holds the key, and keeps it until Resign, until ctx ends
// or until the lease is lost. Ids are unique among living processes: a holder
// with our own id is our former life, killed before its lease ran out, and is
// followed at once.
func Elect(ctx context.Context, client *clientv3.Client, key, id string) (*Leadership, error) {
	grant, err := client.Grant(ctx, leaseSeconds)
	if err != nil {
		return nil, fmt.Errorf("elect %s: %w", key, err)
	}
	kctx, stop := context.WithCancel(ctx)
	alive, err := client.KeepAlive(kctx, grant.ID)
	if err != nil {
		stop()
		return nil, fmt.Errorf("elect %s: %w", key, err)
	}
	l := &Leadership{Key: key, client: client, lease: grant.ID, lost: make(chan struct{}), stop: stop}
	l.done.Go(func() {
		defer close(l.lost)
		for range alive {
		}
	})
	for l.Revision == 0 {
		if err := l.campaign(kctx, id); err != nil {
			return nil, errors.Join(fmt.Errorf("elect %s: %w", key, err), l.Resign())
		}
	}
	return l, nil
}

// campaign tries to take the key once and else waits until its holder is gone.
func (l *Leadership) campaign(ctx context.Context, id string) error {
	put := clientv3.OpPut(l.Key, id, clientv3.WithLease(l.lease))
	r, err := l.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(l.Key), "=", 0)).
		Then(put).Else(clientv3.OpGet(l.Key)).Commit()
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
	for w := range l.client.Watch(wctx, l.Key, clientv3.WithRev(held.ModRevision+1)) {
		if err := w.Err(); err != nil || len(w.Events) > 0 {
			return err
		}
		select {
		case <-l.lost:
			return errors.New("lease lost while waiting")
		default:
		}
	}
	return errors.Join(ctx.Err(), errors.New("watch of the holder ended"))
}

// Lost closes when the leadership may be over. The fence is the proof; this is
// for stopping work early.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Resign gives the leadership back, so that the next one need not wait for the
// lease.
func (l *Leadership) Resign() error {
	l.stop()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
	defer cancel()
	if _, err := l.client.Revoke(ctx, l.lease); err != nil {
		return fmt.Errorf("resign %s: %w", l.Key, err)
	}
	return nil
}
