package packetfilter

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/ownconn"
)

// ruleset is the content of the table, before it is written for the kernel. Its String is what
// nft(8) would be given.
type ruleset struct {
	chains []chain
}

// The hooks of base chains.
const (
	hookInput  = "input"
	hookOutput = "output"
)

type chain struct {
	name  string
	hook  string // "" of one that others jump to
	rules []rule
}

// rule is all of its matches, then a verdict; leads, in its place, finds the chain to jump to by
// destination address and port.
type rule struct {
	matches []match
	verdict string // accept, return, drop, or "jump CHAIN"
	leads   []lead
}

type lead struct {
	to    netip.AddrPort
	chain string
}

// match is one condition of a rule; exactly one field is set.
type match struct {
	loopback    bool           // it came in by the loopback interface
	goesLo      bool           // it leaves by the loopback interface
	protocol    string         // tcp or udp
	established bool           // a TCP packet that is not the first one of a connection
	from        []netip.Prefix // source address, all of one family
	to          netip.Prefix   // destination address
	ports       [2]uint16      // destination port, from and to
	account     int            // user id of the socket that sends it
	own         bool           // it is the service's own: marked, by root
}

// Render makes the rules for the servers of a host, nil for none.
func render(servers []Server) *ruleset {
	servers = slices.SortedFunc(slices.Values(servers), func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	var in, out chain
	in = chain{name: "input", hook: hookInput, rules: []rule{{matches: []match{{loopback: true}}, verdict: "accept"}}}
	out = chain{name: "output", hook: hookOutput}
	var arriving, leaving []lead
	var chains []chain
	var judged []rule // connections that servers make
	for n, s := range servers {
		if s.Filter == nil {
			continue
		}
		name := strconv.Itoa(n + 1)
		for _, at := range s.Addresses {
			if slices.ContainsFunc(arriving, func(l lead) bool { return l.to == at }) {
				continue // another server of the instance on this host, with the same groups
			}
			arriving, leaving = append(arriving, lead{at, "from_net_" + name}), append(leaving, lead{at, "from_here_" + name})
		}
		chains = append(chains, chain{name: "from_net_" + name, rules: fromNetwork(s)}, chain{name: "from_here_" + name, rules: fromHere(s, accountsFor(s, servers))})
		if !s.Filter.AnyDestination && s.Account > 0 {
			chains = append(chains, chain{name: "of_" + name, rules: destinationRules(s)})
			judged = append(judged, rule{matches: []match{{account: s.Account}}, verdict: "jump of_" + name})
		}
	}
	if len(chains) == 0 {
		return nil
	}
	in.rules = append(in.rules, rule{leads: sortedLeads(arriving)})
	out.rules = append([]rule{{leads: sortedLeads(leaving)}}, judged...)
	return &ruleset{append(chains, in, out)}
}

func sortedLeads(list []lead) []lead {
	slices.SortFunc(list, func(a, b lead) int { return a.to.Compare(b.to) })
	return list
}

// accountsFor are the user ids whose connections to a server are not those of clients: its own,
// and those of servers that follow it or another server of the instance.
func accountsFor(s Server, all []Server) []int {
	var ids []int
	for _, o := range all {
		follows := slices.ContainsFunc(o.Follows, func(at netip.AddrPort) bool { return slices.Contains(s.Addresses, at) })
		if o.Account > 0 && (o.ID == s.ID || follows || sameInstance(o, s)) {
			ids = append(ids, o.Account)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// sameInstance says whether two servers share an address, that of their instance.
func sameInstance(a, b Server) bool {
	return slices.ContainsFunc(a.Addresses, func(at netip.AddrPort) bool { return slices.Contains(b.Addresses, at) })
}

// fromNetwork judges packets of other machines to a server by their source.
func fromNetwork(s Server) []rule {
	return append(passFrom(prefixesOf(s.Filter.Hosts)), fromClients(s)...)
}

// fromHere judges packets of this machine to a server also by the sockets that send them.
func fromHere(s Server, accounts []int) []rule {
	rules := []rule{{matches: []match{{own: true}}, verdict: "return"}}
	for _, id := range accounts {
		rules = append(rules, rule{matches: []match{{account: id}}, verdict: "return"})
	}
	return append(rules, fromClients(s)...)
}

func fromClients(s Server) []rule {
	return append(passFrom(joined(s.Filter.Sources, true)), rule{verdict: "drop"})
}

func passFrom(networks []netip.Prefix) []rule {
	if len(networks) == 0 {
		return nil
	}
	return []rule{{matches: []match{{from: networks}}, verdict: "return"}}
}

// destinationRules judge the packets of a server's account by their destination: those that begin
// connections, and datagrams to other machines.
func destinationRules(s Server) []rule {
	rules := []rule{{matches: []match{{established: true}}, verdict: "return"}, {matches: []match{{protocol: "udp"}, {goesLo: true}}, verdict: "return"}}
	reach := slices.Concat(s.Addresses, s.Follows)
	slices.SortFunc(reach, netip.AddrPort.Compare)
	for _, at := range slices.Compact(reach) {
		rules = append(rules, rule{matches: []match{{protocol: "tcp"}, {to: single(at.Addr())}, {ports: [2]uint16{at.Port(), at.Port()}}}, verdict: "return"})
	}
	for _, h := range s.Filter.Hosts {
		rules = append(rules, rule{matches: []match{{protocol: "tcp"}, {to: single(h)}}, verdict: "return"})
	}
	for _, d := range s.Filter.Destinations {
		protocols := []string{d.Protocol}
		if d.Protocol == "" {
			protocols = []string{"tcp", "udp"}
		}
		for _, p := range protocols {
			m := []match{{protocol: p}, {to: d.Network}}
			if d.FromPort > 0 || d.ToPort < 65535 {
				m = append(m, match{ports: [2]uint16{d.FromPort, d.ToPort}})
			}
			rules = append(rules, rule{matches: m, verdict: "return"})
		}
	}
	return append(rules, rule{matches: []match{{protocol: "tcp"}}, verdict: "drop"}, rule{matches: []match{{protocol: "udp"}}, verdict: "drop"})
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func prefixesOf(list []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range list {
		if a.Is4() {
			out = append(out, single(a))
		}
	}
	return joined(out, true)
}

// joined are the networks of one family, sorted, without those that others hold.
func joined(list []netip.Prefix, ipv4 bool) []netip.Prefix {
	list = slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return p.Addr().Is4() != ipv4 })
	slices.SortFunc(list, func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) })
	var out []netip.Prefix
	for _, p := range list {
		if len(out) == 0 || !out[len(out)-1].Contains(p.Addr()) {
			out = append(out, p)
		}
	}
	return out
}

func (r *ruleset) String() string {
	var b strings.Builder
	for _, c := range r.chains {
		fmt.Fprintf(&b, "chain %s {\n", c.name)
		if c.hook != "" {
			fmt.Fprintf(&b, "\ttype filter hook %s priority filter; policy accept;\n", c.hook)
		}
		for _, r := range c.rules {
			fmt.Fprintf(&b, "\t%s\n", r)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func (r rule) String() string {
	if r.leads != nil {
		var leads []string
		for _, l := range r.leads {
			leads = append(leads, fmt.Sprintf("%s . %d : jump %s", l.to.Addr(), l.to.Port(), l.chain))
		}
		return "meta nfproto ipv4 meta l4proto tcp ip daddr . tcp dport vmap { " + strings.Join(leads, ", ") + " }"
	}
	var words []string
	for _, m := range r.matches {
		words = append(words, m.String())
	}
	return strings.Join(append(words, r.verdict), " ")
}

func (m match) String() string {
	switch {
	case m.loopback:
		return `iifname "lo"`
	case m.goesLo:
		return `oifname "lo"`
	case m.protocol != "":
		return "meta l4proto " + m.protocol
	case m.established:
		return "meta l4proto tcp tcp flags & (syn | ack) != syn"
	case m.from != nil:
		var list []string
		for _, p := range m.from {
			list = append(list, p.String())
		}
		return "ip saddr { " + strings.Join(list, ", ") + " }"
	case m.to.IsValid() && m.to.Addr().Is4():
		return "ip daddr " + m.to.String()
	case m.to.IsValid():
		return "ip6 daddr " + m.to.String()
	case m.account > 0:
		return "meta skuid " + strconv.Itoa(m.account)
	case m.own:
		return fmt.Sprintf("meta skuid 0 meta mark 0x%x", ownconn.Mark)
	}
	return fmt.Sprintf("th dport %d-%d", m.ports[0], m.ports[1])
}
