package main

import (
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/drill"
	"kurabe/internal/hostread"
)

// A host answers what a drill asks, with a reason that its user reads.
func TestHostDrills(t *testing.T) {
	host := hostread.Hosts{Here: hostread.NewHandlers("h1")}
	handleDrills(host.Here, drill.NewPermits("h1", t.TempDir(), drillGuard), slog.New(slog.DiscardHandler))
	q := drillQuestion{Server: "db-A", PID: 7, Key: "k"}
	_, permit := hostread.Ask(t.Context(), host, "h1", drillPermit, q)
	_, lasting := hostread.Ask(t.Context(), host, "h1", drillPermitLasting, q)
	_, strike := hostread.Ask(t.Context(), host, "h1", drillStrike, q)
	for says, err := range map[string]error{
		"db-A has no running process on host h1": permit, "has no running process on host h1": lasting, "has no such permit": strike,
	} {
		if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if h, err := hostread.Ask(t.Context(), host, "h1", drillHold, q); err != nil || h != (drill.Held{Over: true, Forgotten: true}) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestVictimOf(t *testing.T) {
	cut := drill.Fault{Action: drill.Cut, For: 5 * time.Second, Peers: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}
	for query, want := range map[string]*drill.Fault{
		"server=db-A&pid=7": {}, "server=db-A&pid=7&action=freeze&for=2s": {Action: drill.Freeze, For: 2 * time.Second},
		"server=db-A&pid=7&action=cut&for=5s&peer=10.0.0.1&peer=10.0.0.2": &cut,

		"server=db-A": nil, "pid=0": nil, "pid=-3": nil, "pid=1x": nil, "pid=7&action=burn": nil, "pid=7&action=freeze": nil,
		"pid=7&action=freeze&for=soon": nil, "pid=7&action=cut&for=5s": nil, "pid=7&action=cut&for=5s&peer=there": nil, "pid=7&action=cut&for=5s&peer=::1": nil,
	} {
		server, pid, fault, err := victimOf(httptest.NewRequest("POST", "/kurabe/drill/permit?"+query, nil))
		if want == nil && kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue || want != nil && (err != nil || server != "db-A" || pid != 7 || !fault.Is(*want)) {
			t.Errorf("%s: %s, %d, %+v, %v", query, server, pid, fault, err)
		}
	}
}
