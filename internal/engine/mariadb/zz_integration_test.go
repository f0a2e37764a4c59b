//go:build integration

package mariadb

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	p := newPair(t)
	for round := range 12 {
		p.waitForFollower(t)
		db, err := open(p.writer.Login())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var g sync.WaitGroup
		for c := range 16 {
			g.Go(func() {
				for k := 0; ; k++ {
					if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?, 'load')", (round+1)*100_000_000+(c+1)*loadFirst+k); err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Second)
		process := p.writer.Process(t)
		began := time.Now()
		_ = process.Signal(syscall.SIGTERM)
		_ = process.Wait(t.Context())
		exit, known := process.Exit()
		t.Log(time.Since(began), exit, known)
		stop()
		g.Wait()
		db.Close()
		p.writer.Want.Role.WaitFor = nil
		p.writer.Satisfy(t)
		p.awaitFollowing(t)
	}
}
