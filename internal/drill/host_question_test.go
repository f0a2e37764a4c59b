package drill

import (
	"log/slog"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/hostread"
)

// A host answers what a drill asks, with a reason that its user reads.
func TestHostDrills(t *testing.T) {
	host := hostread.Hosts{Here: hostread.NewHandlers("h1")}
	Handle(host.Here, NewPermits("h1", t.TempDir(), GuardCommand), slog.New(slog.DiscardHandler))
	q := question{Server: "db-A", PID: 7, Key: "k"}
	_, permit := hostread.Ask(t.Context(), host, "h1", permitKind, q)
	_, hold := hostread.Ask(t.Context(), host, "h1", permitLastingKind, q)
	_, strike := hostread.Ask(t.Context(), host, "h1", strikeKind, q)
	for says, err := range map[string]error{
		"db-A has no running process on host h1": permit, "has no running process on host h1": hold, "has no such permit": strike,
	} {
		if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if h, err := hostread.Ask(t.Context(), host, "h1", holdKind, q); err != nil || h != (Held{Over: true, Forgotten: true}) {
		t.Errorf("%+v, %v", h, err)
	}
}
