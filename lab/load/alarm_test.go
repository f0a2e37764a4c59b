package load

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	for name, patient := range map[string]bool{"kernel": true, "poller": false} {
		t.Run(name, func(t *testing.T) {
			a, err := newAlarm(patient)
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			const pause = 3 * time.Millisecond
			for range 3 {
				start := time.Now()
				if rang, err := a.wait(pause); !rang || err != nil {
					t.Fatal(rang, err)
				}
				if took := time.Since(start); took < pause {
					t.Errorf("it rang after %s", took)
				}
			}
			ended := make(chan bool)
			go func() {
				rang, _ := a.wait(time.Hour)
				ended <- rang
			}()
			// It may wait by now or be about to: it ends in both cases.
			a.stop()
			if <-ended {
				t.Error("an alarm that was stopped rang")
			}
			if rang, err := a.wait(time.Hour); rang || err != nil {
				t.Error(rang, err)
			}
			a.close()
			a.stop() // somebody may come late
		})
	}
}
