package main

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/drill"
)

// A host answers what a drill asks, with a reason that its user reads.
func TestHostDrills(t *testing.T) {
	answer := hostAnswerer(nil, nil, newHostDrills("h1", t.TempDir(), slog.New(slog.DiscardHandler)))
	for kind, says := range map[string]string{
		askDrillPermit: "db-A has no living process on host h1", askDrillPermitLasting: "db-A has no living process on host h1",
		askDrillStrike: "knows of no such permit",
	} {
		_, err := answer(t.Context(), kind, json.RawMessage(`{"Server":"db-A","PID":7,"Key":"k"}`))
		if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := answer(t.Context(), kind, json.RawMessage(`{`)); err == nil {
			t.Errorf("%s: half a question is answered", kind)
		}
	}
	if h, err := answer(t.Context(), askDrillHold, json.RawMessage(`{"Server":"db-A","Key":"k"}`)); err != nil || h != (drill.Held{Over: true, Forgotten: true}) {
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
