package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// listPage is how many keys one read asks for. Records average 2 KB, so a page
// is about 1 MB; even 500 records of RecordBytesMax are 50 MB, which the
// in-process client carries.
const listPage = 500

// etcdKV is a KV over etcd.
type etcdKV struct {
	client *clientv3.Client
	place  string        // what stands in the place of Family in the real keys
	bound  time.Duration // of one request, 0 for none
	mark   int64         // the revision that the mark must have, 0 for any
}

// Etcd returns a KV over the client of a node of ours, whose owner closes it.
func Etcd(client *clientv3.Client) KV { return etcdKV{client: client, place: Family} }

// requestTime bounds one request to an etcd of others: the time after which a member gives
// up on its own leader.
const requestTime = 7 * time.Second

// EtcdAt is Etcd over an etcd of others, of which what begins with place is ours.
func EtcdAt(client *clientv3.Client, place string) KV {
	return etcdKV{client: client, place: place, bound: requestTime}
}

// OpenAt opens the store at a place, as OpenOf does. What is written to it is written only as
// long as the mark is the one that was found: not after the records were removed, nor to
// those that were restored in their place.
func OpenAt(ctx context.Context, client *clientv3.Client, place, service string) (KV, error) {
	kv := etcdKV{client: client, place: place, bound: requestTime}
	if err := OpenOf(ctx, kv, service); err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, formatKey)
	if err == nil {
		err = checkFormat(e, service)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	kv.mark = e.ModRevision
	return kv, nil
}

// KeyAt is the real key of one of ours.
func KeyAt(place, key string) string { return place + strings.TrimPrefix(key, Family) }

func (s etcdKV) real(key string) string { return KeyAt(s.place, key) }

func (s etcdKV) ours(real []byte) string { return Family + strings.TrimPrefix(string(real), s.place) }

// asking is the context of what others are asked: a member that has lost the majority is to
// say so, and the next one is asked.
func (s etcdKV) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.bound == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), s.bound)
}

// Get implements KV.
func (s etcdKV) Get(ctx context.Context, key string) (Entry, error) {
	ctx, cancel := s.asking(ctx)
	defer cancel()
	r, err := s.client.Get(ctx, s.real(key))
	if err != nil {
		return Entry{}, fmt.Errorf("store get: %w", late(err))
	}
	if len(r.Kvs) == 0 {
		return Entry{Key: key}, nil
	}
	return Entry{Key: key, Value: r.Kvs[0].Value, ModRevision: r.Kvs[0].ModRevision}, nil
}

// List implements KV. Every page after the first reads at the first one's
// revision, so the list is one state although it takes several requests.
func (s etcdKV) List(ctx context.Context, prefix string) ([]Entry, int64, error) {
	var out []Entry
	var revision int64
	first := s.real(prefix)
	key, end := first, clientv3.GetPrefixRangeEnd(first)
	for {
		opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(listPage)}
		if revision != 0 {
			opts = append(opts, clientv3.WithRev(revision))
		}
		attempt, cancel := s.asking(ctx)
		r, err := s.client.Get(attempt, key, opts...)
		cancel()
		if errors.Is(err, rpctypes.ErrCompacted) {
			// So slow a reader that its revision is gone: start again.
			out, revision, key = nil, 0, first
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("store list %s: %w", prefix, late(err))
		}
		if revision == 0 {
			revision = r.Header.Revision
		}
		for _, kv := range r.Kvs {
			out = append(out, Entry{Key: s.ours(kv.Key), Value: kv.Value, ModRevision: kv.ModRevision})
		}
		if !r.More || len(r.Kvs) == 0 {
			return out, revision, nil
		}
		key = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

// Txn implements KV.
func (s etcdKV) Txn(ctx context.Context, conds []Cond, ops []Op) (int64, error) {
	if err := checkTxn(conds, ops); err != nil {
		return 0, err
	}
	cmps := make([]clientv3.Cmp, 0, len(conds))
	for _, c := range conds {
		if c.Prefix {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(s.real(c.Key)), "<", c.ModRevision+1).WithPrefix())
			continue
		}
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(s.real(c.Key)), "=", c.ModRevision))
	}
	then := make([]clientv3.Op, 0, len(ops))
	for _, op := range ops {
		if op.Delete {
			then = append(then, clientv3.OpDelete(s.real(op.Key)))
			continue
		}
		then = append(then, clientv3.OpPut(s.real(op.Key), string(op.Value)))
	}
	ctx, cancel := s.asking(ctx)
	defer cancel()
	var otherwise []clientv3.Op
	if mark := s.real(formatKey); s.mark != 0 {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(mark), "=", s.mark))
		otherwise = append(otherwise, clientv3.OpGet(mark))
	}
	commit := func() (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(cmps...).Then(then...).Else(otherwise...).Commit()
	}
	r, err := commit()
	for end := time.Now().Add(droppedTime); dropped(err) && time.Now().Before(end) && ctx.Err() == nil; {
		// Nobody leads at this moment, and nothing was written: the next try is the first.
		select {
		case <-ctx.Done():
		case <-time.After(droppedPause):
			r, err = commit()
		}
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return 0, fmt.Errorf("%w: %w", ErrFull, err)
	}
	err = late(err)
	if err != nil {
		return 0, fmt.Errorf("store txn: %w", err)
	}
	if !r.Succeeded {
		if len(otherwise) > 0 {
			if found := r.Responses[0].GetResponseRange().Kvs; len(found) == 0 || found[0].ModRevision != s.mark {
				return 0, fmt.Errorf("store txn: the records were removed or replaced: %w", ErrForeign)
			}
		}
		return 0, ErrConflict
	}
	for _, resp := range r.Responses {
		if resp.GetResponsePut() != nil || resp.GetResponseDeleteRange().GetDeleted() > 0 {
			return r.Header.Revision, nil
		}
	}
	return 0, nil
}

// A member that knows no leader drops what it is to write: droppedTime is what an election
// takes, and twice that.
const (
	droppedTime  = 3 * time.Second
	droppedPause = 50 * time.Millisecond
)

// dropped says that a write was given up before anybody but this process knew of it, by our
// own node (raft's ErrProposalDropped, of which the client leaves the text) or by a member
// of others that knows of no leader.
func dropped(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "raft proposal dropped") || errors.Is(err, rpctypes.ErrNoLeader))
}

// late makes a time-out of what nobody has answered or decided on in time: a write may be
// stored, or yet be stored.
func late(err error) error {
	if err == nil {
		return nil
	}
	code := status.Code(err)
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = e.Code() // such as that nobody leads, or that the one who led is lost
	}
	if code == codes.Unavailable || code == codes.DeadlineExceeded || dropped(err) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// opened is a watch whose opening may hang: the node answers nothing while it waits for a disk
// that is full, not even that the watch has ended.
func opened(ctx context.Context, open func() clientv3.WatchChan) <-chan clientv3.WatchResponse {
	out := make(chan clientv3.WatchResponse)
	go func() { // ends with the client at last
		defer close(out)
		for r := range open() {
			select {
			case out <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// received is the next of a watch, none once ctx has ended or the watch has.
func received(ctx context.Context, in <-chan clientv3.WatchResponse) (clientv3.WatchResponse, bool) {
	select {
	case r, open := <-in:
		return r, open
	case <-ctx.Done():
		return clientv3.WatchResponse{}, false
	}
}

// Watch implements KV.
func (s etcdKV) Watch(ctx context.Context, prefix string, fromRevision int64) <-chan Batch {
	out := make(chan Batch)
	go func() {
		defer close(out)
		// An own context ends etcd's side when we stop for another reason.
		wctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if s.bound != 0 {
			wctx = clientv3.WithRequireLeader(wctx)
		}
		in := opened(wctx, func() clientv3.WatchChan {
			return s.client.Watch(wctx, s.real(prefix), clientv3.WithPrefix(), clientv3.WithRev(fromRevision))
		})
		for {
			r, open := received(ctx, in)
			if !open {
				break
			}
			b := Batch{Revision: r.Header.GetRevision(), Resync: r.Err() != nil}
			for _, e := range r.Events {
				b.Events = append(b.Events, KeyEvent{
					Entry:   Entry{Key: s.ours(e.Kv.Key), Value: e.Kv.Value, ModRevision: e.Kv.ModRevision},
					Deleted: e.Type == clientv3.EventTypeDelete,
				})
			}
			if len(b.Events) == 0 && !b.Resync {
				continue
			}
			if len(b.Events) > 0 {
				// The header may be ahead of what was delivered while a slow
				// watcher catches up; the last event never is.
				b.Revision = b.Events[len(b.Events)-1].ModRevision
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Resync {
				return
			}
		}
		// The client gave up without a word (server stopped, client closed).
		select {
		case out <- Batch{Resync: true}:
		case <-ctx.Done():
		}
	}()
	return out
}
