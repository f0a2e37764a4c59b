package packetfilter

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kurabe"
)

// writer is the primary of an instance, with an address of its own beside the endpoint.
func writer() kurabe.Assignment {
	return kurabe.Assignment{
		Instance: "db-A", Goal: kurabe.GoalRunning, Address: "127.66.0.1", ListensAt: "127.66.0.2", Port: 5432, Role: &kurabe.Role{Duty: kurabe.DutyWrite},
		Filter: &kurabe.PacketFilter{Sources: []string{"10.0.0.0/8", "10.1.0.0/16", "127.0.0.0/9", "::/0"}, AnyDestination: true, Hosts: []string{"10.9.0.2"}},
	}
}

func standby() kurabe.Assignment {
	a := writer()
	a.Instance, a.ListensAt = "db-A~2", "127.66.0.3"
	a.Role = &kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-A", Address: "127.66.0.2", Port: 5432}}
	return a
}

// replica is another instance, which follows the primary, and permits other clients.
func replica(f *kurabe.PacketFilter) kurabe.Assignment {
	return kurabe.Assignment{
		Instance: "db-B", Goal: kurabe.GoalRunning, Address: "127.66.0.9", Port: 3306, Filter: f,
		Role: &kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-A", Address: "127.66.0.2", Port: 5432}},
	}
}

func servers(t *testing.T, all ...kurabe.Assignment) []Server {
	t.Helper()
	var list []Server
	for n, a := range all {
		s, err := ServerOf(a, 70001+n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// TestRender compares with testdata, which KURABE_GOLDEN=write writes.
func TestRender(t *testing.T) {
	egress := &kurabe.PacketFilter{Sources: nil, Destinations: []kurabe.Destination{
		{Network: "192.168.0.0/16", Protocol: "tcp", FromPort: 443, ToPort: 444}, {Network: "10.0.0.0/24", Protocol: kurabe.AnyProtocol, ToPort: 65535},
		{Network: "fd00::/8", Protocol: "udp", FromPort: 0, ToPort: 65535},
	}}
	for name, list := range map[string][]Server{
		"pair":    servers(t, writer(), standby()),
		"replica": servers(t, writer(), replica(nil)),
		"egress":  servers(t, replica(egress)),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "render", name+".nft")
			got := render(list).String()
			if os.Getenv("KURABE_GOLDEN") == "write" {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v; rendered:\n%s", err, got)
			}
			slices.Reverse(list)
			if again := render(list).String(); again != got {
				t.Errorf("in another order:\n%s", again)
			}
		})
	}
	if r := render(servers(t, replica(nil))); r != nil {
		t.Errorf("of a server that permits everything:\n%s", r)
	}
}

func TestIntervals(t *testing.T) {
	p := netip.MustParsePrefix
	got := ""
	for _, e := range intervals(joined([]netip.Prefix{p("10.0.1.0/24"), p("10.0.0.0/24"), p("10.0.0.7/32"), p("192.0.0.0/2"), p("fd00::/8")}, true)) {
		a, _ := netip.AddrFromSlice(e.Key)
		got += a.String() + map[bool]string{true: "< ", false: " "}[e.IntervalEnd]
	}
	if want := "10.0.0.0 10.0.2.0< 192.0.0.0 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRefused goes through connections of two instances on one host.
func TestRefused(t *testing.T) {
	w := writer()
	w.Filter.Sources = []string{"10.0.0.0/8"}
	narrow := &kurabe.PacketFilter{Sources: []string{"0.0.0.0/0"}, Destinations: []kurabe.Destination{{Network: "10.0.0.0/24", Protocol: "tcp", FromPort: 443, ToPort: 443}}}
	all := servers(t, w, standby(), replica(narrow))
	at := netip.MustParseAddrPort
	var both []connection // a connection on this machine has two sockets
	here := func(client, server string, account int, own bool) {
		both = append(both, connection{at(client), at(server), account, own, nil}, connection{at(server), at(client), 70001, false, nil})
	}
	here("127.0.0.1:1001", "127.66.0.1:5432", 1000, false) // a client: refused
	here("127.0.0.1:1002", "127.66.0.2:5432", 70002, false)
	here("127.0.0.1:1003", "127.66.0.2:5432", 70003, false)
	here("127.0.0.1:1004", "127.66.0.1:5432", 0, true)
	here("127.0.0.1:1005", "127.66.0.1:5432", 0, false) // root is a client, too: refused
	here("127.0.0.1:1006", "127.66.0.1:9999", 1000, false)
	far := []connection{
		{at("127.66.0.1:5432"), at("10.1.2.3:1"), 70001, false, nil}, {at("127.66.0.1:5432"), at("192.0.2.1:1"), 70001, false, nil}, // the second: refused
		{at("127.66.0.1:5432"), at("10.9.0.2:1"), 70001, false, nil},
		{at("10.0.0.5:2001"), at("10.0.0.9:443"), 70003, false, nil}, {at("10.0.0.5:2002"), at("10.0.0.9:80"), 70003, false, nil}, // likewise
	}
	var got []string
	for _, c := range refused(append(both, far...), all) {
		got = append(got, c.remote.String())
	}
	slices.Sort(got)
	if want := []string{"10.0.0.9:80", "127.0.0.1:1001", "127.0.0.1:1005", "192.0.2.1:1"}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%q, want %q", got, want)
	}
}
