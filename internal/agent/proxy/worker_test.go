package proxy

import (
	"net/netip"
	"testing"

	"kurabe/internal/proxy/pool"
	"kurabe/internal/proxy/process"
)

// TestInForceOnlyByTheWholeRoute: a process that missed the reload by which the new primary of
// an epoch became known would serve nobody for ever, if the epoch alone were compared.
func TestInForceOnlyByTheWholeRoute(t *testing.T) {
	one, other := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	w := &worker{config: &process.Config{}, route: &pool.Route{Epoch: 2, Writer: one, Readers: []netip.AddrPort{other}}}
	sum, err := w.config.Sum()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		route pool.Route
		want  bool
	}{
		"the same":           {pool.Route{Epoch: 2, Writer: one, Readers: []netip.AddrPort{other}}, true},
		"an earlier epoch":   {pool.Route{Epoch: 1, Writer: one, Readers: []netip.AddrPort{other}}, false},
		"no primary yet":     {pool.Route{Epoch: 2, Readers: []netip.AddrPort{other}}, false},
		"without its reader": {pool.Route{Epoch: 2, Writer: one}, false},
	} {
		if got := w.inForce(process.Status{Version: sum, Route: c.route}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
