package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
)

// What a server of 15 writes of a wait that ends early, as it stands in its log.
const (
	aCancel   = "2026-11-25 15:40:01 UTC:127.0.0.1(50112):master@shop:[771]:WARNING:  canceling wait for synchronous replication due to user request\n"
	anEnd     = "2026-11-25 15:40:02 UTC:[::1](50113):master@shop:[772]:WARNING:  canceling the wait for synchronous replication and terminating connection due to administrator command\n"
	theDetail = "2026-11-25 15:40:01 UTC:127.0.0.1(50112):master@shop:[771]:DETAIL:  The transaction has already committed locally, but might not have been replicated to the standby.\n"
)

func TestCountEnded(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       kurabe.WaitCount
	}{
		{"nothing", "", kurabe.WaitCount{}},
		{"a cancelled statement", aCancel + theDetail, kurabe.WaitCount{Cancelled: 1}},
		{"an ended session", anEnd + theDetail, kurabe.WaitCount{Ended: 1}},
		{"several among others", "2026-11-25 15:40:00 UTC::@:[70]:LOG:  checkpoint starting: time\n" + aCancel + theDetail + anEnd + aCancel, kurabe.WaitCount{Cancelled: 2, Ended: 1}},
		{"with the state", strings.Replace(aCancel, "WARNING:  ", "WARNING:  01000: ", 1) + strings.Replace(anEnd, "WARNING:  ", "WARNING:  57P01: ", 1), kurabe.WaitCount{Cancelled: 1, Ended: 1}},
		{"the service's own", "2026-11-25 15:40:02 UTC:[local]:rdsadmin@rdsadmin:[9]:" + anEnd[strings.Index(anEnd, "WARNING"):], kurabe.WaitCount{}},
		{"the words in a statement", "2026-11-25 15:40:02 UTC:127.0.0.1(5):master@shop:[9]:STATEMENT:  SELECT\n\t" + aCancel, kurabe.WaitCount{}},
		{"the words of a user's", strings.Replace(aCancel, "request\n", "request, they say\n", 1), kurabe.WaitCount{}},
		{"another level", strings.Replace(aCancel, "WARNING", "LOG", 1), kurabe.WaitCount{}},
		{"in the midst of a line", "x" + aCancel, kurabe.WaitCount{}},
	} {
		if got := countEnded([]byte(c.text)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Nothing that is written is missed or counted twice, whenever it is read, over the hours'
// files, of which the server removes old ones.
func TestReadWaits(t *testing.T) {
	d, i := &Driver{}, engine.Instance{Home: engine.Home{Dir: t.TempDir()}}
	if err := os.Mkdir(i.Home.LogDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	const first, next = logNamePrefix + "2026-11-25-15", logNamePrefix + "2026-11-25-16"
	write := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(i.Home.LogDir(), name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	var at engine.LogPlace
	read := func(want int64) {
		t.Helper()
		to, n, err := d.ReadWaits(t.Context(), i, at)
		if err != nil || n.Sum() != want {
			t.Errorf("from %+v: %+v, %v, want %d", at, n, err, want)
		}
		at = to
	}
	read(0) // there is no file yet
	write(first, aCancel)
	write(first+".csv", aCancel)
	read(1)
	read(0)
	write(first, aCancel[:40])
	read(0) // not written to its end
	write(first, aCancel[40:]+anEnd+strings.Repeat("x", 3*endedChunk)+"\n"+aCancel)
	read(3)
	write(first, aCancel)
	write(next, aCancel+anEnd)
	read(3)
	if err := os.Remove(filepath.Join(i.Home.LogDir(), first)); err != nil {
		t.Fatal(err)
	}
	write(next, aCancel)
	read(1)
	at = engine.LogPlace{}
	read(0) // what was there before anybody counted
	write(next, aCancel)
	read(1)
}

func TestTellsWaits(t *testing.T) {
	for _, c := range []struct {
		settings map[string]string
		want     bool
	}{
		{nil, true},
		{map[string]string{"log_min_messages": "warning", "log_destination": "stderr,csvlog"}, true},
		{map[string]string{"log_min_messages": "debug1"}, true},
		{map[string]string{"log_min_messages": "ERROR"}, false},
		{map[string]string{"log_min_messages": "log"}, false},
		{map[string]string{"log_destination": "csvlog"}, false},
	} {
		var i engine.Instance
		i.Settings = c.settings
		if got := (&Driver{}).TellsWaits(i); got != c.want {
			t.Errorf("%v: %v", c.settings, got)
		}
	}
}
