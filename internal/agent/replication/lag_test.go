package replication

import (
	"testing"
	"time"

	"kurabe/internal/engine"
)

// The lag is the server's own word, but never more than the time since it had applied all;
// of what does not follow, or does not answer, there is none.
func TestLag(t *testing.T) {
	behind := func(applied int64, lag time.Duration) *engine.RoleView {
		return &engine.RoleView{Following: true, Position: 9, Applied: applied, Lag: lag}
	}
	const long = time.Hour
	for name, c := range map[string]struct {
		looks []glance
		idle  time.Duration // since the newest look
		want  time.Duration
		none  bool
	}{
		"never asked":                             {nil, 0, 0, true},
		"it has applied all":                      {[]glance{{LookEvery, behind(9, 0), false, nil}}, 0, 0, false},
		"it has been behind from the first":       {[]glance{{LookEvery, behind(5, long), false, nil}}, 0, long, false},
		"its source was idle before":              {[]glance{{LookEvery, behind(9, 0), false, nil}, {LookEvery, behind(5, long), false, nil}}, 0, LookEvery, false},
		"it is less behind than it was all":       {[]glance{{LookEvery, behind(9, 0), false, nil}, {long, behind(5, time.Second), false, nil}}, 0, time.Second, false},
		"it cannot tell":                          {[]glance{{LookEvery, behind(5, engine.LagUnknown), false, nil}, {2 * time.Second, behind(5, engine.LagUnknown), false, nil}}, 0, 2 * time.Second, false},
		"it cannot tell, and nothing is left":     {[]glance{{LookEvery, behind(9, engine.LagUnknown), false, nil}}, 0, 0, false},
		"its clock is behind its source's":        {[]glance{{LookEvery, behind(5, 0), false, nil}, {2 * time.Second, behind(5, 0), false, nil}}, 0, 2 * time.Second, false},
		"its clock was set ahead":                 {[]glance{{LookEvery, behind(9, 0), false, nil}, {LookEvery, behind(5, 12*long), false, nil}}, 0, LookEvery, false},
		"it has caught up":                        {[]glance{{LookEvery, behind(5, long), false, nil}, {LookEvery, behind(9, 0), false, nil}}, 0, 0, false},
		"nothing comes any more":                  {[]glance{{LookEvery, behind(9, 0), false, nil}, {LookEvery, &engine.RoleView{Position: 9, Applied: 9}, false, nil}}, 0, 0, true},
		"its replay is paused":                    {[]glance{{LookEvery, &engine.RoleView{Paused: true}, false, nil}}, 0, 0, true},
		"it writes":                               {[]glance{{LookEvery, writes(9, nil, nil), false, nil}}, 0, 0, true},
		"it does not answer":                      {[]glance{{LookEvery, behind(9, 0), false, nil}}, StuckAfter, 0, true},
		"all is not applied while it has stopped": {[]glance{{LookEvery, &engine.RoleView{}, false, nil}, {LookEvery, behind(5, long), false, nil}}, 0, long, false},
	} {
		var s State
		now := time.Unix(1000, 0)
		for _, g := range c.looks {
			now = now.Add(g.after)
			g.take(&s, now)
		}
		if lag, reason := s.Lag(now.Add(c.idle)); lag != c.want || (reason != "") != c.none {
			t.Errorf("%s: %v, %q", name, lag, reason)
		}
	}
}
