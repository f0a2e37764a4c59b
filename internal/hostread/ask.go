package hostread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"kurabe"
)

// Hosts are the hosts of the service, as one of its servers asks them.
type Hosts struct {
	Here *Handlers // of this machine
	// Far carries a frame to another host and its answer back; nil: there is no way to any.
	Far func(context.Context, Frame) (Frame, error)
}

// Ask asks a host. The error has the code that the handler gave it, CodeThrottled when the host
// has no slot, and CodeUnavailable, with a cause, when another host does not answer.
func Ask[Q, A any](ctx context.Context, hosts Hosts, host kurabe.HostID, k Kind[Q, A], q Q) (answer A, err error) {
	if host == hosts.Here.host {
		fn := hosts.Here.kinds[k.Name].typed.(func(context.Context, Q) (A, error))
		return within(ctx, hosts.Here, k.Class, func(ctx context.Context) (A, error) { return fn(ctx, q) })
	}
	if hosts.Far == nil {
		return answer, kurabe.Errorf(kurabe.CodeUnavailable, "the server is on host %s, but the service was started without --host-listen", host)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return answer, err
	}
	f, err := hosts.Far(ctx, Frame{Host: host, Kind: k.Name, Body: body})
	var far A
	switch {
	case err != nil:
	case f.Error != nil && f.Error.Code != "":
		return answer, &kurabe.Error{Code: f.Error.Code, Message: f.Error.Message}
	case f.Error != nil:
		err = errors.New(f.Error.Message)
	default:
		err = json.Unmarshal(f.Body, &far)
	}
	if err != nil {
		return answer, &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("host %s does not answer; try again", host), Err: err}
	}
	return far, nil
}

const (
	// resumeTime is for how long a stream looks for a way to its host: hosts find another
	// planner sooner.
	resumeTime  = 3 * time.Second
	resumePause = 100 * time.Millisecond
)

// Stream reads an answer in chunks, each from the cursor that the chunk before has named: next
// puts it into the question, and says false after the last chunk. Between chunks it has no slot
// of the host. A host that does not answer is asked again from the same cursor for a time. The
// stream ends with its first error.
func Stream[Q, A any](ctx context.Context, hosts Hosts, host kurabe.HostID, k Kind[Q, A], q Q, next func(*Q, A) bool) iter.Seq2[A, error] {
	return func(yield func(A, error) bool) {
		for more := true; more; {
			a, err := Ask(ctx, hosts, host, k, q)
			for began := time.Now(); kurabe.CodeOf(err) == kurabe.CodeUnavailable && hosts.Far != nil && time.Since(began) < resumeTime && ctx.Err() == nil; {
				select {
				case <-time.After(resumePause):
				case <-ctx.Done():
				}
				a, err = Ask(ctx, hosts, host, k, q)
			}
			more = yield(a, err) && err == nil && next(&q, a)
		}
	}
}

// AskAll asks hosts at once, for a time at most, and takes the answers one by one. Hosts that do not answer are
// away, which is an error when none answers; one that refuses the question ends it.
func AskAll[A any](ctx context.Context, hosts []kurabe.HostID, most time.Duration, ask func(context.Context, kurabe.HostID) (A, error), take func(A)) (away []kurabe.HostID, failure error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var mu sync.Mutex // guards the rest, and what take changes
	var refused, silent error
	var wait sync.WaitGroup
	for _, host := range hosts {
		wait.Go(func() {
			answer, err := ask(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			switch code := kurabe.CodeOf(err); code {
			case "":
				take(answer)
			case kurabe.CodeUnavailable, kurabe.CodeInternal:
				away, silent = append(away, host), err
			default:
				refused = err
			}
		})
	}
	wait.Wait()
	slices.Sort(away)
	switch {
	case refused != nil:
		return nil, refused
	case len(away) < len(hosts):
		return away, nil
	case kurabe.CodeOf(silent) == kurabe.CodeUnavailable:
		return away, silent
	}
	return away, &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "no host answers; try again", Err: silent}
}
