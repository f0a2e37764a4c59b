package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"kurabe/test/bench/bed"
)

// setStatic does what Patroni's manual has for a static parameter: the configuration of the
// cluster is edited, and once both members say that they owe a restart they are restarted, the
// standby first. One who takes a switchover in its place reads the row of that, and then
// restarts a server that nobody writes to.
func (c *patroniCluster) setStatic(ctx context.Context, p lostPair) (float64, error) {
	x := statics[bed.Postgres]
	value := x.values[c.sets%len(x.values)]
	c.sets++
	number, err := strconv.Atoi(value)
	if err != nil {
		return 0, err
	}
	writer, standby := c.node(p.writer), c.node(p.standby)
	edit := map[string]any{"postgresql": map[string]any{"parameters": map[string]any{x.name: number}}}
	if _, err := writer.rest(ctx, patroniAsk, http.MethodPatch, "/config", edit); err != nil {
		return 0, err
	}
	err = c.await(ctx, "owe a restart", func() string {
		for _, n := range c.nodes {
			if owes, err := n.owesRestart(ctx); err != nil || !owes {
				return fmt.Sprintf("%s owes one: %t, %v", n.ID, owes, err)
			}
		}
		return ""
	})
	if err != nil {
		return 0, err
	}
	from := time.Now()
	for _, n := range []*patroniNode{standby, writer} {
		if _, err := n.rest(ctx, patroniOrder, http.MethodPost, "/restart", map[string]any{}); err != nil {
			return 0, err
		}
	}
	_, seconds, err := c.again(ctx, from)
	if err != nil {
		return seconds, err
	}
	for _, n := range c.nodes {
		if have, err := n.ask(ctx, c.password, x.ask); err != nil || have != value {
			return seconds, fmt.Errorf("%s has %s %q, want %q: %w", n.ID, x.name, have, value, err)
		}
	}
	return seconds, nil
}

// owesRestart is what its Patroni says of a restart that is pending.
func (n *patroniNode) owesRestart(ctx context.Context) (bool, error) {
	answer, err := n.rest(ctx, patroniAsk, http.MethodGet, "/patroni", nil)
	if err != nil {
		return false, err
	}
	return patroniOwesRestart(answer)
}

func patroniOwesRestart(body []byte) (bool, error) {
	var state struct {
		PendingRestart bool `json:"pending_restart"`
	}
	err := json.Unmarshal(body, &state)
	return state.PendingRestart, err
}
