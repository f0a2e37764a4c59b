package proxy

import (
	"net/netip"
	"slices"
	"strconv"

	"kurabe"
)

// Target is the instance or cluster to whose servers a proxy leads.
type Target struct {
	Name  string        // "db:NAME" or "cluster:NAME"
	Group *kurabe.Group // nil of an instance with one server
	// Assignments and Reports are those of its servers.
	Assignments []kurabe.Assignment
	Reports     []kurabe.InstanceReport
}

// writer is the server that writes, nil while nobody is known to.
func (t *Target) writer() *kurabe.Assignment {
	if t == nil {
		return nil
	}
	for n := range t.Assignments {
		a := &t.Assignments[n]
		if a.Goal == kurabe.GoalRunning && a.Writes() && (t.Group == nil || a.Instance == t.Group.Primary && a.Role != nil && a.Role.Epoch == t.Group.Epoch) {
			return a
		}
	}
	return nil
}

// takesClients says whether the server that writes admits clients in its epoch. A server
// without a group needs no permission: whoever is too early tries again.
func (t *Target) takesClients(a *kurabe.Assignment) bool {
	if t.Group == nil {
		return true
	}
	return slices.ContainsFunc(t.Reports, func(r kurabe.InstanceReport) bool {
		return r.Instance == a.Instance && r.Role != nil && r.Role.Epoch == t.Group.Epoch && r.Role.Writing
	})
}

func (d *draft) writerHost() kurabe.HostID {
	if a := d.w.Target.writer(); a != nil {
		return a.Host
	}
	return ""
}

// lead decides where the proxy leads. A server that was deposed is named no more from the
// moment on at which the group has another epoch; whoever writes next is named when it admits
// clients, and stays named for its epoch, whatever it does meanwhile.
func (d *draft) lead() {
	t, was := d.w.Target, d.next.Route
	route := kurabe.ProxyRoute{Epoch: max(was.Epoch, 1)}
	var epoch kurabe.Epoch
	if t != nil && t.Group != nil {
		epoch = t.Group.Epoch
	}
	var servers []kurabe.ProxyServer
	if writer := t.writer(); writer != nil {
		at := listens(writer)
		named := was.Writer == at && (d.next.TargetEpoch == epoch || d.next.TargetEpoch == 0)
		if named || t.takesClients(writer) {
			route.Writer = at
		}
		servers = append(servers, kurabe.ProxyServer{ID: writer.Instance, Address: at})
		route.Readers, servers = t.readers(writer, servers)
	}
	if was.Writer != "" && was.Writer != route.Writer {
		route.Epoch++ // sessions with the former writer end
	}
	d.next.Route, d.next.Servers, d.next.TargetEpoch, d.next.Target = route, servers, epoch, ""
	if t != nil {
		d.next.Target = t.Name
	}
}

// readers are the servers behind the reader endpoint of a cluster, which has left out those
// that are too far behind.
func (t *Target) readers(writer *kurabe.Assignment, servers []kurabe.ProxyServer) ([]string, []kurabe.ProxyServer) {
	var list []string
	if writer.Role == nil {
		return nil, servers
	}
	for _, ip := range writer.Role.Readers {
		at := hostPort(ip, writer.Port)
		for n := range t.Assignments {
			if a := &t.Assignments[n]; a.Instance != writer.Instance && listens(a) == at {
				list = append(list, at)
				servers = append(servers, kurabe.ProxyServer{ID: a.Instance, Address: at, Reads: true})
			}
		}
	}
	return list, servers
}

func listens(a *kurabe.Assignment) string {
	return hostPort(a.Listens(), a.Port)
}

// hostPort is HOST:PORT of an address, "" of none.
func hostPort(address string, port int) string {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(at, uint16(port)).String()
}

// defaultConnections are the engines' own max_connections, where a server is told none.
var defaultConnections = map[kurabe.EngineName]int{kurabe.Postgres: 100, kurabe.MariaDB: 151}

// tlsParameters force TLS on the clients of a server.
var tlsParameters = map[kurabe.EngineName]string{kurabe.Postgres: "rds.force_ssl", kurabe.MariaDB: "require_secure_transport"}

// configure copies what the spec and the target say.
func (d *draft) configure() {
	s, a := d.w.Spec, &d.next
	a.Proxy, a.Name, a.Absent, a.Engine, a.Port = s.ID, s.Name, false, s.Engine, s.Port()
	a.RequireTLS, a.IdleClientTimeoutS, a.DebugLogging = s.RequireTLS, s.IdleClientTimeoutS, s.DebugLogging
	a.BorrowTimeoutS, a.InitQuery, a.PinningFilters = s.Pool.BorrowTimeoutS, s.Pool.InitQuery, s.Pool.PinningFilters
	a.Secrets, a.Names = nil, nil
	for _, auth := range s.Auth {
		if version, ok := d.w.Secrets[auth.SecretARN]; ok {
			a.Secrets = append(a.Secrets, kurabe.ProxySecret{ARN: auth.SecretARN, Version: version})
		}
	}
	if d.w.Domain.Named() {
		for _, e := range a.Endpoints {
			a.Names = append(a.Names, d.w.Domain.ProxyEndpoint(s.Name, e.Name))
		}
	}
	writer := d.w.Target.writer()
	if writer == nil {
		return // as before, for whoever writes next
	}
	connections, err := strconv.Atoi(writer.Settings["max_connections"])
	if err != nil {
		connections = defaultConnections[s.Engine]
	}
	a.MaxServers = max(1, connections*s.Pool.MaxConnectionsPercent/100)
	a.MaxIdle = connections * s.Pool.MaxIdleConnectionsPercent / 100
	forced := writer.Settings[tlsParameters[s.Engine]]
	a.ServerTLS = s.RequireTLS || forced == "1" || forced == "on" || forced == "ON" ||
		slices.ContainsFunc(d.w.Target.Assignments, func(o kurabe.Assignment) bool { return o.Host != a.Host })
}
