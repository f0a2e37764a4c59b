package failover

import (
	"context"
	"time"

	"kurabe/test/bench/bed"
)

// comparison is a run with what its file has of the failovers.
type comparison struct {
	*bed.Run
	book  *Book
	began time.Time // when this piece of the failovers began
}

// Parts are the benchmarks that lose servers of instances and clusters, or price them.
func Parts(b *Book) []bed.Part {
	with := func(measure func(context.Context, *comparison) error) func(context.Context, *bed.Run) error {
		return func(ctx context.Context, r *bed.Run) error { return measure(ctx, &comparison{Run: r, book: b}) }
	}
	return []bed.Part{
		{Names: []string{Clusters}, Run: with(clustersPart)},
		{Names: []string{"failover", Hosts}, Run: with(failover)},
		{Names: []string{"replica"}, Run: with(replica)},
	}
}

// site is a service with its hosts.
type site struct {
	*bed.Lab
	hosts *hostsBed // its databases are on machines in miniature; nil: here
}

// site is the service on this machine.
func (r *comparison) site(ctx context.Context) (*site, error) {
	l, err := r.Service(ctx)
	return &site{Lab: l}, err
}

// writerHome is the folder of an instance, over two hosts that of the server that writes.
func (l *site) writerHome(i *bed.Instance) string {
	if l.hosts != nil {
		return l.hosts.writerHome(i.Id)
	}
	return l.Home(i)
}
