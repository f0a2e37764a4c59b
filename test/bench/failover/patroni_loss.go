package failover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kurabe/internal/harness"
	"kurabe/internal/proc"
)

// again waits for rows and for the pair, and says how long nothing was acknowledged from
// a moment on. A Patroni that was away may take what its successor has: until it has come
// to rest, that counts.
func (c *patroniCluster) again(ctx context.Context, from time.Time) (lostPair, float64, error) {
	if err := more(ctx, c.pulse, pulseRows); err != nil {
		return lostPair{}, 0, err
	}
	p, err := c.pair(ctx)
	if err != nil {
		return p, 0, err
	}
	// It may have become whole before the client had found it again.
	err = more(ctx, c.pulse, pulseRows)
	return p, c.pulse.Gap(from).Seconds(), err
}

// kill kills the server alone: its Patroni starts it again, or has the other one promoted.
func (c *patroniCluster) kill(ctx context.Context, p lostPair) (float64, error) {
	return c.killServer(ctx, p.writer)
}

func (c *patroniCluster) killStandby(ctx context.Context, p lostPair) (float64, error) {
	return c.killServer(ctx, p.standby)
}

// killServer waits for another process of the server: until then what is told of it may be of
// before.
func (c *patroniCluster) killServer(ctx context.Context, m harness.Member) (float64, error) {
	before, err := m.Server()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := harness.KillServers(m); err != nil {
		return 0, err
	}
	err = c.await(ctx, "start "+m.ID+" again", func() string {
		if now, err := m.Server(); err != nil || now == before {
			return fmt.Sprintf("it has %d, %v", now, err)
		}
		return ""
	})
	if err != nil {
		return 0, err
	}
	_, seconds, err := c.again(ctx, from)
	return seconds, err
}

func (c *patroniCluster) freeze(ctx context.Context, p lostPair) (float64, error) {
	return c.hang(ctx, c.node(p.writer))
}

// loseStandby is measured by the time without an acknowledgement: the client gives a row
// up after some seconds, and goes on with the next one, which waits as well.
func (c *patroniCluster) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	return c.hang(ctx, c.node(p.standby))
}

// hang freezes a server until rows are acknowledged without it.
func (c *patroniCluster) hang(ctx context.Context, n *patroniNode) (float64, error) {
	from := time.Now()
	if err := n.freeze(); err != nil {
		return 0, err
	}
	if err := more(ctx, c.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := n.thaw(); err != nil {
		return 0, err
	}
	_, seconds, err := c.again(ctx, from)
	return seconds, err
}

func (c *patroniCluster) inOrder(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	order := map[string]string{"leader": p.writer.ID, "candidate": p.standby.ID}
	if _, err := c.node(p.writer).rest(ctx, patroniOrder, http.MethodPost, "/switchover", order); err != nil {
		return 0, err
	}
	now, seconds, err := c.again(ctx, from)
	if err == nil && now.writer != p.standby {
		err = fmt.Errorf("after the switchover %s writes", now.writer.ID)
	}
	return seconds, err
}

// loseHost kills the writer and its Patroni, as a loss of power does, but that both are on this
// machine: its ports refuse clients from then on, and its streams are told that it has ended.
func (c *patroniCluster) loseHost(ctx context.Context, p lostPair) (float64, error) {
	return c.switchOff(ctx, c.node(p.writer))
}

func (c *patroniCluster) loseStandbyHost(ctx context.Context, p lostPair) (float64, error) {
	return c.switchOff(ctx, c.node(p.standby))
}

// switchOff ends a server with its Patroni. Both come back once rows are acknowledged without it.
func (c *patroniCluster) switchOff(ctx context.Context, n *patroniNode) (float64, error) {
	from := time.Now()
	// Its Patroni first, which would start the server again.
	if err := errors.Join(n.patroni.kill(ctx), proc.KillSurvivors(ctx, n.DataDir())); err != nil {
		return 0, err
	}
	if err := more(ctx, c.pulse, pulseRows); err != nil {
		return 0, err
	}
	var err error
	if n.patroni, err = n.launch(); err != nil {
		return 0, err
	}
	_, seconds, err := c.again(ctx, from)
	return seconds, err
}
