package load

import (
	"testing"
	"time"
)

// alarmed runs a test of an alarm, for a goroutine and in a loop.
func alarmed(t *testing.T, test func(t *testing.T, a *alarm)) {
	for name, in := range map[string]func(func(*task)){
		"poller": func(do func(*task)) { do(nil) },
		"loop":   func(do func(*task)) { inLoop(t, do) },
	} {
		t.Run(name, func(t *testing.T) {
			in(func(task *task) {
				a, err := newAlarm(task)
				if err != nil {
					t.Error(err)
					return
				}
				defer a.close()
				test(t, a)
			})
		})
	}
}

func TestAlarm(t *testing.T) {
	alarmed(t, func(t *testing.T, a *alarm) {
		const pause = 3 * time.Millisecond
		for range 3 {
			start := time.Now()
			if rang, err := a.wait(pause); !rang || err != nil {
				t.Error(rang, err)
			}
			if took := time.Since(start); took < pause {
				t.Errorf("it rang after %s", took)
			}
		}
	})
}

func TestAlarmStopped(t *testing.T) {
	alarmed(t, func(t *testing.T, a *alarm) {
		// It may wait by then or be about to: it ends in both cases.
		go a.stop()
		if rang, err := a.wait(time.Hour); rang || err != nil {
			t.Error(rang, err)
		}
		if rang, err := a.wait(time.Hour); rang || err != nil {
			t.Error(rang, err)
		}
		a.close()
		a.stop() // somebody may come late
	})
}
