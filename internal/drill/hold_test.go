package drill

import (
	"net/netip"
	"testing"
	"time"

	"kurabe"
)

// frozen has the host's server frozen by a permit.
func (f *remoteHost) frozen(t *testing.T, lasts time.Duration) Permit {
	t.Helper()
	fault := Fault{Action: Freeze, For: lasts}
	p, err := f.Give(farServer, f.process.PID, fault)
	if err != nil || !p.Is(fault) {
		t.Fatalf("%+v, %v", p, err)
	}
	if state(t, f.process) == "T" {
		t.Fatal("a permit alone freezes")
	}
	if err := f.Use(farServer, p.Key, fault); err != nil {
		t.Fatal(err)
	}
	return p
}

func (f *remoteHost) goesOn(t *testing.T) {
	t.Helper()
	await(t, "the server goes on", func() bool { return state(t, f.process) != "T" })
}

// over waits for the end, and returns what is told of it.
func (f *remoteHost) over(t *testing.T, p Permit) (h Held) {
	t.Helper()
	await(t, "it is over", func() (over bool) {
		var err error
		if h, err = f.Hold(t.Context(), farServer, p.Key, false); err != nil {
			t.Fatal(err)
		}
		return h.Over
	})
	return h
}

// What is frozen is so until the drill has it go on; who asks twice freezes once.
func TestFreezeOfAHost(t *testing.T) {
	f := newRemoteHost(t)
	p := f.frozen(t, FreezeMax)
	if h, err := f.Hold(t.Context(), farServer, p.Key, false); err != nil || h != (Held{}) || state(t, f.process) != "T" {
		t.Errorf("%+v, %v, %s", h, err, state(t, f.process))
	}
	for range 2 {
		if h, err := f.Hold(t.Context(), farServer, p.Key, true); err != nil || h != (Held{Over: true}) || state(t, f.process) == "T" {
			t.Errorf("%+v, %v, %s", h, err, state(t, f.process))
		}
		if err := f.Use(farServer, p.Key, p.Fault); err != nil || state(t, f.process) == "T" {
			t.Errorf("a second time: %v", err)
		}
	}
	wantRefused(t, f, f.Use(farServer, p.Key, Fault{}), "the request says killed, the permit says frozen for 10m0s")
	for server, key := range map[kurabe.InstanceID]string{"db-A": p.Key, farServer: f.give(t).Key} {
		if h, err := f.Hold(t.Context(), server, key, true); err != nil || h != (Held{Over: true, Forgotten: true}) {
			t.Errorf("%s: %+v, %v", server, h, err)
		}
	}
}

// It ends by itself: with its time, without a word of the drill, and with the server.
func TestFreezeOfAHostEnds(t *testing.T) {
	t.Run("its time is up", func(t *testing.T) {
		f := newRemoteHost(t)
		p := f.frozen(t, FreezeMin)
		f.goesOn(t)
		if h := f.over(t, p); h != (Held{Over: true}) {
			t.Errorf("%+v", h)
		}
	})
	t.Run("the drill says nothing", func(t *testing.T) {
		f := newRemoteHost(t)
		f.silence = 50 * time.Millisecond
		p := f.frozen(t, FreezeMax)
		f.goesOn(t)
		if h := f.over(t, p); h != (Held{Over: true, Silent: true}) {
			t.Errorf("%+v", h)
		}
	})
	t.Run("the server is killed", func(t *testing.T) {
		f := newRemoteHost(t)
		p := f.frozen(t, FreezeMax)
		if err := f.process.Signal(9); err != nil {
			t.Fatal(err)
		}
		if h := f.over(t, p); h != (Held{Over: true, Ended: true}) {
			t.Errorf("%+v", h)
		}
	})
}

// The start of a guard takes time, after which a permit may be over, and can fail.
func TestFreezeOfAHostIsNotBegun(t *testing.T) {
	f := newRemoteHost(t)
	fault := Fault{Action: Freeze, For: FreezeMax}
	p, err := f.Give(farServer, f.process.PID, fault)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	f.now = func() int64 {
		looks++
		return int64(looks-1) * int64(PermitTime)
	}
	wantRefused(t, f, f.Use(farServer, p.Key, fault), "the request came later than 10s")
	if looks < 2 || state(t, f.process) == "T" {
		t.Errorf("looked at the clock %d times, %s", looks, state(t, f.process))
	}
	f.Permits = NewPermits("h2", f.homes, []string{"/bin/false"})
	if p, err = f.Give(farServer, f.process.PID, fault); err != nil {
		t.Fatal(err)
	}
	if err := f.Use(farServer, p.Key, fault); err == nil || state(t, f.process) == "T" {
		t.Errorf("%v, %s", err, state(t, f.process))
	}
}

// What a host is asked for is checked before anything is looked up.
func TestPermitOfNoFault(t *testing.T) {
	f := newRemoteHost(t)
	for _, fault := range []Fault{{Action: "burn"}, {Action: Freeze}, {Action: Cut, For: time.Second}, {Action: Cut, For: time.Second, Peers: []netip.Addr{{}}}} {
		if _, err := f.Give(farServer, f.process.PID, fault); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%+v: %v", fault, err)
		}
	}
}
