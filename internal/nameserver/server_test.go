package nameserver

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// zone has one endpoint, and a name that has none yet.
type zone struct{}

const apex = "c0.us-east-1.rds.db.test"

func (zone) EndpointDomain() string { return apex }

func (zone) ResolveEndpoint(name string) (netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	switch {
	case name == "shop."+apex:
		return netip.MustParseAddr("127.66.0.7"), true
	case name == "six."+apex:
		return netip.MustParseAddr("fd00::7"), true
	}
	return netip.Addr{}, name == apex || strings.HasSuffix(name, "."+apex)
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", zone{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("it does not end")
		}
	})
	return s
}

func TestAnswers(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		ask   string
		kind  uint16
		class uint16
		rcode int
		want  string // the answer, "" for none
		soa   bool
	}{
		"an endpoint":            {"shop." + apex, dns.TypeA, dns.ClassINET, dns.RcodeSuccess, "127.66.0.7", false},
		"in capitals":            {"SHOP." + strings.ToUpper(apex), dns.TypeA, dns.ClassINET, dns.RcodeSuccess, "127.66.0.7", false},
		"over IPv6":              {"six." + apex, dns.TypeAAAA, dns.ClassINET, dns.RcodeSuccess, "fd00::7", false},
		"no IPv6 address":        {"shop." + apex, dns.TypeAAAA, dns.ClassINET, dns.RcodeSuccess, "", true},
		"another type":           {"shop." + apex, dns.TypeTXT, dns.ClassINET, dns.RcodeSuccess, "", true},
		"nothing there":          {"wiki." + apex, dns.TypeA, dns.ClassINET, dns.RcodeNameError, "", true},
		"the domain":             {apex, dns.TypeA, dns.ClassINET, dns.RcodeSuccess, "", true},
		"the domain's authority": {apex, dns.TypeSOA, dns.ClassINET, dns.RcodeSuccess, apex, false},
		"another domain":         {"example.com", dns.TypeA, dns.ClassINET, dns.RcodeRefused, "", false},
		"the root":               {".", dns.TypeNS, dns.ClassINET, dns.RcodeRefused, "", false},
		"another class":          {"shop." + apex, dns.TypeA, dns.ClassCHAOS, dns.RcodeRefused, "", false},
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				q := new(dns.Msg)
				q.SetQuestion(dns.Fqdn(c.ask), c.kind)
				q.Question[0].Qclass = c.class
				client := dns.Client{Net: network, Timeout: 5 * time.Second}
				r, _, err := client.Exchange(q, s.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if len(r.Answer) == 1 {
					got = r.Answer[0].String()
				}
				if r.Rcode != c.rcode || !strings.Contains(got, c.want) || (got == "") != (c.want == "") || (len(r.Ns) == 1) != c.soa {
					t.Errorf("got %v", r)
				}
				if r.RecursionAvailable || r.Authoritative == (c.rcode == dns.RcodeRefused) {
					t.Errorf("recursion %v, authority %v", r.RecursionAvailable, r.Authoritative)
				}
			})
		}
	}
}

// An answer is never much larger than its question: a forged sender's address must not be
// worth anything.
func TestNoAmplification(t *testing.T) {
	s := &Server{zone: zone{}}
	for _, kind := range []uint16{dns.TypeA, dns.TypeANY, dns.TypeSOA, dns.TypeNS} {
		q := new(dns.Msg)
		q.SetQuestion(dns.Fqdn("shop."+apex), kind)
		if ask, answer := q.Len(), s.answer(q).Len(); answer > 4*ask {
			t.Errorf("type %d: %d bytes for %d", kind, answer, ask)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"shop." + apex, apex, ".", "example.com"} {
		q := new(dns.Msg)
		q.SetQuestion(dns.Fqdn(name), dns.TypeA)
		raw, err := q.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{0, 1, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	s := &Server{zone: zone{}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		q := new(dns.Msg)
		if q.Unpack(raw) != nil {
			return
		}
		if _, err := s.answer(q).Pack(); err != nil {
			t.Errorf("the answer cannot be sent: %v", err)
		}
	})
}
