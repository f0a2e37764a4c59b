package kurabe

import (
	"net/netip"
	"net/url"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/drill"
)

func TestVictim(t *testing.T) {
	cut := drill.Fault{Action: drill.Cut, For: 5 * time.Second, Peers: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}
	for text, want := range map[string]*drill.Fault{
		"server=db-A&pid=7": {}, "server=db-A&pid=7&action=freeze&for=2s": {Action: drill.Freeze, For: 2 * time.Second},
		"server=db-A&pid=7&action=cut&for=5s&peer=10.0.0.1&peer=10.0.0.2": &cut,

		"server=db-A": nil, "pid=0": nil, "pid=-3": nil, "pid=1x": nil, "pid=7&action=burn": nil, "pid=7&action=freeze": nil,
		"pid=7&action=freeze&for=soon": nil, "pid=7&action=cut&for=5s": nil, "pid=7&action=cut&for=5s&peer=there": nil, "pid=7&action=cut&for=5s&peer=::1": nil,
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q := query{Values: values}
		in := q.victim()
		if err = q.err; err == nil {
			err = in.check()
		}
		if want == nil && kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue || want != nil && (err != nil || in.Server != "db-A" || in.PID != 7 || !in.Fault.Is(*want)) {
			t.Errorf("%s: %+v, %v", text, in, err)
		}
	}
}
