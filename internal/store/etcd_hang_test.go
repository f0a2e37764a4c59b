package store

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hung is a node that waits for its disk: it never answers, and ends no watch.
type hung struct {
	clientv3.Watcher
	opens bool
	end   chan struct{}
}

func (h hung) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	if h.opens {
		return make(chan clientv3.WatchResponse)
	}
	<-h.end
	return nil
}

// A watch ends with its context, whatever the node does; or a service could not end.
func TestWatchOfAHungNodeEnds(t *testing.T) {
	for name, opens := range map[string]bool{"never opened": false, "never closed": true} {
		t.Run(name, func(t *testing.T) {
			h := hung{opens: opens, end: make(chan struct{})}
			defer close(h.end)
			ctx, cancel := context.WithCancel(t.Context())
			watch := Etcd(&clientv3.Client{Watcher: h}).Watch(ctx, Root, 1)
			cancel()
			deadline := time.After(10 * time.Second)
			for open := true; open; {
				select {
				case _, open = <-watch: // at most that it is to be opened again
				case <-deadline:
					t.Fatal("it waits for the node")
				}
			}
		})
	}
}
