package nameserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
)

// Bounds. A client asks once a connection, so five seconds of an answer's life are no load,
// and an endpoint's address is the same for its life; it is short for names that are not there yet.
const (
	answerTTL = 5 * time.Second
	ioTimeout = 2 * time.Second
	// tcpMax is how many connections are served at once; others wait in the kernel's queue.
	tcpMax = 64
	// tcpQueriesMax is how many questions one connection may ask.
	tcpQueriesMax = 128
	// udpBytesMax is what is read of a question; one of ours has no more than 300.
	udpBytesMax = 1232
)

// Zone says what the names are that are answered for.
type Zone interface {
	// ResolveEndpoint returns the address behind a name, the zero one for none; within says
	// whether the name is the service's at all.
	ResolveEndpoint(name string) (address netip.Addr, within bool)
	// EndpointDomain is what they end with, without a dot at its end.
	EndpointDomain() string
}

// Server answers at one address.
type Server struct {
	zone Zone
	udp  net.PacketConn
	tcp  net.Listener
}

// Listen takes the address, over UDP and TCP; port 0 chooses a free one, the same for both.
func Listen(address string, zone Zone) (*Server, error) {
	const tries = 20 // with port 0 the port that UDP gets can be taken over TCP
	for try := 1; ; try++ {
		udp, err := net.ListenPacket("udp", address)
		if err != nil {
			return nil, fmt.Errorf("listen for questions of DNS: %w", err)
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err == nil {
			return &Server{zone: zone, udp: udp, tcp: netutil.LimitListener(tcp, tcpMax)}, nil
		}
		udp.Close()
		if _, port, _ := net.SplitHostPort(address); port != "0" || try == tries {
			return nil, fmt.Errorf("listen for questions of DNS: %w", err)
		}
	}
}

// Addr is where it answers, over both.
func (s *Server) Addr() netip.AddrPort { return s.tcp.Addr().(*net.TCPAddr).AddrPort() }

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		w.WriteMsg(s.answer(q)) // the client is gone, or asks again
	})
	servers := []*dns.Server{
		{PacketConn: s.udp, Handler: handler, UDPSize: udpBytesMax, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout},
		{Listener: s.tcp, Handler: handler, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
			IdleTimeout: func() time.Duration { return ioTimeout }, MaxTCPQueries: tcpQueriesMax},
	}
	ended := make(chan error, len(servers))
	for _, server := range servers {
		go func() { ended <- server.ActivateAndServe() }()
	}
	left := len(servers)
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
		left--
		err = fmt.Errorf("answer questions of DNS: %w", err)
	}
	s.Close()
	for range left {
		<-ended
	}
	return err
}

// Close gives the address up.
func (s *Server) Close() {
	s.udp.Close()
	s.tcp.Close()
}

// answer is what a question gets.
func (s *Server) answer(q *dns.Msg) *dns.Msg {
	r := new(dns.Msg)
	r.SetReply(q)
	r.Authoritative = true
	if q.Opcode != dns.OpcodeQuery || len(q.Question) != 1 {
		r.Authoritative, r.Rcode = false, dns.RcodeNotImplemented
		return r
	}
	ask := q.Question[0]
	address, within := s.zone.ResolveEndpoint(ask.Name)
	if !within || ask.Qclass != dns.ClassINET {
		r.Authoritative, r.Rcode = false, dns.RcodeRefused
		return r
	}
	apex := dns.Fqdn(s.zone.EndpointDomain())
	isApex := strings.EqualFold(dns.Fqdn(ask.Name), apex)
	head := dns.RR_Header{Name: ask.Name, Class: dns.ClassINET, Ttl: uint32(answerTTL / time.Second)}
	switch {
	case ask.Qtype == dns.TypeA && address.Is4():
		head.Rrtype = dns.TypeA
		r.Answer = []dns.RR{&dns.A{Hdr: head, A: address.AsSlice()}}
	case ask.Qtype == dns.TypeAAAA && address.Is6():
		head.Rrtype = dns.TypeAAAA
		r.Answer = []dns.RR{&dns.AAAA{Hdr: head, AAAA: address.AsSlice()}}
	case ask.Qtype == dns.TypeSOA && isApex:
		r.Answer = []dns.RR{soa(apex)}
	case address.IsValid() || isApex: // the name is there, what was asked for is not
		r.Ns = []dns.RR{soa(apex)}
	default:
		r.Rcode, r.Ns = dns.RcodeNameError, []dns.RR{soa(apex)}
	}
	return r
}

// soa tells resolvers how long they may remember that something is not there.
func soa(apex string) dns.RR {
	ttl := uint32(answerTTL / time.Second)
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: apex, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  apex, Mbox: "hostmaster." + apex, Serial: 1, Refresh: ttl, Retry: ttl, Expire: ttl, Minttl: ttl,
	}
}
