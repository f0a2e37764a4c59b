package mariadb

import (
	"context"
	"fmt"

	"kurabe/internal/engine"
)

// CommittedAlone implements engine.Driver by the numbers of transactions in the binary
// log. Those that are only prepared in the engine, because nobody has answered for them,
// are among those that it counts.
func (d *Driver) CommittedAlone(ctx context.Context, i engine.Instance, caFile string) (int64, error) {
	if d.IsFollower(i.Home) {
		return 0, nil
	}
	if err := d.AwaitWrites(ctx, i); err != nil {
		return 0, fmt.Errorf("wait for what the server has written: %w", err)
	}
	own, err := newestLogged(i.Home.DataDir())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	source, err := askSource(ctx, i, caFile)
	if err != nil {
		return 0, err
	}
	alone, known := source.lacks(own)
	if !known {
		return 0, fmt.Errorf("%w: no transaction is in both logs", engine.ErrUncounted)
	}
	return alone, nil
}

// lacks is how many transactions a server with this history lacks of those of another one,
// which has these newest ones of each writer: all after the newest that both have, since
// numbers grow by one, whoever writes. False when they have none in common.
func (h history) lacks(own []gtid) (int64, bool) {
	last, found := newest(own)
	if !found {
		return 0, false
	}
	var common uint64
	for _, g := range own {
		if g.domain == groupDomain && h.has(g) {
			common = max(common, g.seq)
		}
	}
	other := history{state: own}
	for _, list := range [][]gtid{h.state, h.applied} {
		for _, g := range list {
			if g.domain == groupDomain && other.has(g) {
				common = max(common, g.seq)
			}
		}
	}
	if common == 0 {
		return 0, false
	}
	return int64(last.seq - common), true
}
