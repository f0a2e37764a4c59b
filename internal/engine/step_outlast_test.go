package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

// outlaster is a driver that knows, or not, when its server gave its last word.
type outlaster struct {
	stub
	ago time.Duration // 0: it does not know
	err error
}

func (o *outlaster) LastWord(context.Context, Instance) (int64, error) {
	if o.ago == 0 || o.err != nil {
		return 0, o.err
	}
	return proc.Boottime() - int64(o.ago), nil
}

func TestOutlastRest(t *testing.T) {
	for name, c := range map[string]struct {
		driver      Driver
		least, most time.Duration
	}{
		"the engine cannot tell":      {&stub{}, kurabe.OutlastTime, kurabe.OutlastTime},
		"it does not know":            {&outlaster{}, kurabe.OutlastTime / 2, kurabe.OutlastTime},
		"it does not answer":          {&outlaster{ago: time.Hour, err: errors.New("no")}, kurabe.OutlastTime / 2, kurabe.OutlastTime},
		"the word is long over":       {&outlaster{ago: time.Hour}, 0, 0},
		"the word is of a moment ago": {&outlaster{ago: kurabe.OutlastTime / 2}, 1, kurabe.OutlastTime / 2},
	} {
		l := &Lifecycle{c: Config{Driver: c.driver}}
		if got := l.outlastRest(t.Context(), Instance{}); got < c.least || got > c.most {
			t.Errorf("%s: waits for %v, want %v to %v", name, got, c.least, c.most)
		}
	}
	if got := restOf(int64(time.Hour), 0); got != kurabe.OutlastTime {
		t.Errorf("a moment that is to come: %v", got)
	}
}
