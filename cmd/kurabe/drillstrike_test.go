package main

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"kurabe"
)

// A host answers what a drill asks, with a reason that its user reads.
func TestHostDrills(t *testing.T) {
	answer := hostAnswerer(nil, nil, newHostDrills("h1", t.TempDir(), slog.New(slog.DiscardHandler)))
	for kind, says := range map[string]string{askDrillPermit: "db-A has no living process on host h1", askDrillStrike: "knows of no such permit"} {
		_, err := answer(t.Context(), kind, json.RawMessage(`{"Server":"db-A","PID":7,"Key":"k"}`))
		if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := answer(t.Context(), kind, json.RawMessage(`{`)); err == nil {
			t.Errorf("%s: half a question is answered", kind)
		}
	}
}

func TestVictimOf(t *testing.T) {
	for query, good := range map[string]bool{"server=db-A&pid=7": true, "server=db-A": false, "pid=0": false, "pid=-3": false, "pid=1x": false} {
		server, pid, err := victimOf(httptest.NewRequest("POST", "/kurabe/drill/permit?"+query, nil))
		if good != (err == nil) || good && (server != "db-A" || pid != 7) || !good && kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%s: %s, %d, %v", query, server, pid, err)
		}
	}
}
