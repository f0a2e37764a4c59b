package kurabe

import (
	"net/netip"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/drill"
)

func TestPermitDrillCheck(t *testing.T) {
	peers := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	for name, c := range map[string]struct {
		pid   int
		fault drill.Fault
		ok    bool
	}{
		"kill":               {7, drill.Fault{}, true},
		"freeze":             {7, drill.Fault{Action: drill.Freeze, For: 2 * time.Second}, true},
		"cut":                {7, drill.Fault{Action: drill.Cut, For: 5 * time.Second, Peers: peers}, true},
		"no process":         {0, drill.Fault{}, false},
		"negative":           {-3, drill.Fault{}, false},
		"unknown":            {7, drill.Fault{Action: "burn"}, false},
		"freeze for ever":    {7, drill.Fault{Action: drill.Freeze}, false},
		"cut from nobody":    {7, drill.Fault{Action: drill.Cut, For: 5 * time.Second}, false},
		"cut from a v6 peer": {7, drill.Fault{Action: drill.Cut, For: 5 * time.Second, Peers: []netip.Addr{netip.MustParseAddr("::1")}}, false},
	} {
		in := PermitDrillInput{PID: c.pid, Fault: c.fault}
		if err := in.check(); c.ok != (err == nil) || !c.ok && kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%s: %v", name, err)
		}
	}
}
