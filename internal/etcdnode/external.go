package etcdnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/logkey"
)

const (
	// lookEvery is how often an external etcd is asked whether it is there, and what it was;
	// lookTime bounds one such question.
	lookEvery = time.Second
	lookTime  = 2 * time.Second
	// awayAfter is longer than etcd needs for an election of its own.
	awayAfter = 5 * time.Second
	// keepEvery is how often it is written down how far it has come.
	keepEvery = time.Minute
	// connectPause is how soon an etcd that did not answer is tried again.
	connectPause = 500 * time.Millisecond
)

// Errors of an external etcd. They wrap the details.
var (
	// ErrUnreached: it has not answered in time. Trying again may help.
	ErrUnreached = errors.New("etcd does not answer")
	// ErrOther: it holds something else than it did: it was restored, replaced, or the
	// records were removed. Hosts obey no order that is older than their last.
	ErrOther = errors.New("the state in etcd is not the earlier one")
)

// Seen is how far an external etcd had come when it was seen last.
type Seen struct {
	Cluster  uint64
	Revision int64
}

// ExternalOptions say where an etcd of others is, and what of it is ours.
type ExternalOptions struct {
	Access
	// Prefix is what all keys of ours begin with. Key gives the real key of one of the
	// service's; Mark is one that is there as long as the state is.
	Prefix string
	Key    func(string) string
	Mark   string
	// Seen is what it was when it was seen last, zero for never. Keep is told of what it
	// becomes, now and then.
	Seen Seen
	Keep func(Seen) error
	// Away is told when it does not answer any more, and Back when it does again.
	Away func(why error)
	Back func()
	Log  *slog.Logger
}

// External is an etcd that others run and keep, of which a part is ours.
type External struct {
	ExternalOptions
	ended *fatalHook

	mu       sync.Mutex // guards the rest
	client   *clientv3.Client
	seen     Seen
	mark     []byte // what is kept under Mark
	answered time.Time
	away     bool
}

// NewExternal returns an External; Connect reaches it.
func NewExternal(o ExternalOptions) *External {
	return &External{ExternalOptions: o, ended: newFatalHook(), seen: o.Seen}
}

// Connect returns when etcd has answered, and is no other one than was seen before. It tries
// until ctx ends, and gives up at once when it is refused.
func (x *External) Connect(ctx context.Context) error {
	var last error
	for {
		err := x.connect(ctx)
		if err == nil || errors.Is(err, ErrOther) || refusedAccess(err) {
			return err
		}
		switch {
		case ctx.Err() != nil && last != nil:
			err = last // the newest one says that the time was up
		case last == nil || last.Error() != err.Error():
			x.Log.Warn("state store not reachable yet, retrying", "endpoints", x.Endpoints, logkey.Error, err)
		}
		last = err
		select {
		case <-time.After(connectPause):
		case <-ctx.Done():
			return fmt.Errorf("%w at %s: %w", ErrUnreached, strings.Join(x.Endpoints, ", "), err)
		}
	}
}

func (x *External) connect(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.client == nil {
		client, err := x.dial(ctx)
		if err != nil {
			return x.explain(ctx, err)
		}
		x.client = client
	}
	r, err := x.ask(ctx, x.client)
	if err != nil {
		return x.explain(ctx, err)
	}
	return x.seeLocked(r)
}

// ask reads the mark, from a majority.
func (x *External) ask(ctx context.Context, client *clientv3.Client) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), lookTime)
	defer cancel()
	return client.Get(ctx, x.Key(x.Mark))
}

// seeLocked notes an answer, or says that it is another etcd's than before.
func (x *External) seeLocked(r *clientv3.GetResponse) error {
	now := Seen{r.Header.ClusterId, r.Header.Revision}
	switch {
	case x.seen.Cluster != 0 && now.Cluster != x.seen.Cluster:
		return fmt.Errorf("%w: its cluster id is %x and was %x", ErrOther, now.Cluster, x.seen.Cluster)
	case now.Revision < x.seen.Revision:
		return fmt.Errorf("%w: its revision is %d and was %d: it was restored from an older copy", ErrOther, now.Revision, x.seen.Revision)
	}
	x.seen, x.answered = now, time.Now()
	return nil
}

// refusedAccess says that etcd has answered, and will not answer otherwise.
func refusedAccess(err error) bool {
	for _, refusal := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return errors.Is(err, errFiles)
}

// Apart demands that the prefix does not lie within another service's: that one would find
// records in its own that it does not know.
func (x *External) Apart(ctx context.Context) error {
	for outer := x.Prefix; outer != "" && outer != "/"; {
		outer = outer[:strings.LastIndexByte(strings.TrimSuffix(outer, "/"), '/')+1]
		mark := outer + strings.TrimPrefix(x.Key(x.Mark), x.Prefix)
		attempt, cancel := context.WithTimeout(ctx, lookTime)
		r, err := x.Client().Get(attempt, mark)
		cancel()
		switch {
		case errors.Is(err, rpctypes.ErrPermissionDenied): // what we may not see is not our business
		case err != nil:
			return fmt.Errorf("%w: %w", ErrUnreached, err)
		case len(r.Kvs) > 0:
			return fmt.Errorf("prefix %s lies within %s of another service; choose one outside", x.Prefix, outer)
		}
	}
	return nil
}

// ErrOld: a member is older than several servers can count on.
var ErrOld = errors.New("etcd is too old for several servers: before 3.5.13 a deposed leader may renew a lease, so that two planners count as elected")

// versionMin is the first one in which a member makes sure that it leads before it renews or
// ends a lease (https://github.com/etcd-io/etcd/pull/17425).
var versionMin = [3]int{3, 5, 13}

// CheckVersion refuses an etcd of which a member that is reached is too old for several
// elections' candidates.
func (x *External) CheckVersion(ctx context.Context) error {
	reached := 0
	var errs []error
	for _, endpoint := range x.Endpoints {
		attempt, cancel := context.WithTimeout(ctx, lookTime)
		r, err := x.Client().Status(attempt, endpoint)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
			continue
		}
		reached++
		if older(r.Version, versionMin) {
			return fmt.Errorf("%s is %s: %w", endpoint, r.Version, ErrOld)
		}
	}
	if reached == 0 {
		return fmt.Errorf("%w: %w", ErrUnreached, errors.Join(errs...))
	}
	return nil
}

// older compares a version, such as 3.5.13 or 3.6.0-rc.1; one that cannot be read is older.
func older(version string, than [3]int) bool {
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return true
	}
	return slices.Compare(v[:], than[:]) < 0
}

// Client returns the client, nil before Connect. The External closes it.
func (x *External) Client() *clientv3.Client {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.client
}

// Seen is how far etcd had come when it answered last.
func (x *External) Seen() Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen
}

// Elect is Elect below the prefix.
func (x *External) Elect(ctx context.Context, key, id string) (*Leadership, error) {
	return Elect(clientv3.WithRequireLeader(ctx), x.Client(), x.Key(key), id)
}

// Holder is who holds an election, "" for nobody.
func (x *External) Holder(ctx context.Context, key string) (string, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), lookTime)
	defer cancel()
	r, err := x.Client().Get(ctx, x.Key(key))
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Value), nil
}

// Adopt notes what is kept under the mark: from now on it must stay as it is.
func (x *External) Adopt(ctx context.Context) error {
	r, err := x.ask(ctx, x.Client())
	if err != nil {
		return err
	}
	if len(r.Kvs) == 0 {
		return fmt.Errorf("%w: %s is missing", ErrOther, x.Key(x.Mark))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.seeLocked(r); err != nil {
		return err
	}
	x.mark = r.Kvs[0].Value
	return x.Keep(x.seen)
}

// Maintain watches over etcd until ctx ends: whether it answers, and whether it is what it
// was. Space, history and copies of the whole are its owner's.
func (x *External) Maintain(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	kept := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !x.look(ctx) || time.Since(kept) < keepEvery {
			continue
		}
		kept = time.Now()
		if err := x.Keep(x.Seen()); err != nil {
			x.Log.Warn("could not save the revision of the state store", logkey.Error, err)
		}
	}
}

// look asks once, and says whether there was an answer.
func (x *External) look(ctx context.Context) bool {
	r, err := x.ask(ctx, x.Client())
	if ctx.Err() != nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		if silent := time.Since(x.answered); silent >= awayAfter && !x.away {
			x.away = true
			x.Log.Warn("state store does not answer; databases keep running, and no change is possible", "silent", silent, logkey.Error, err)
			x.Away(err)
		}
		return false
	}
	silent := time.Since(x.answered)
	err = x.seeLocked(r)
	if err == nil && (len(r.Kvs) == 0 || !bytes.Equal(r.Kvs[0].Value, x.mark)) {
		err = fmt.Errorf("%w: %s was removed or changed", ErrOther, x.Key(x.Mark))
	}
	if err != nil {
		x.Away(err)
		x.ended.fail(err)
		return false
	}
	if x.away {
		x.away = false
		x.Log.Info("state store answers again", "silent", silent)
		x.Back()
	}
	return true
}

// Failed closes when the service must not go on with this etcd.
func (x *External) Failed() <-chan struct{} { return x.ended.fired }

// Err says why.
func (x *External) Err() error { return x.ended.err() }

// Close ends the connection.
func (x *External) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.client == nil {
		return nil
	}
	if err := x.client.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
