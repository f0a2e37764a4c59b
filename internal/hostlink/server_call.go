package hostlink

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"slices"

	"kurabe"
	"kurabe/internal/store"
)

// catalogRequest is a catalog as a host found it.
type catalogRequest struct{ Catalog kurabe.Catalog }

// renewRequest asks for a new certificate, certAnswer is one.
type renewRequest struct{ CSRPEM []byte }
type certAnswer struct{ CertPEM []byte }

// proxyUsersRequest asks for the users of a proxy.
type proxyUsersRequest struct{ Proxy kurabe.ProxyID }

// call answers one call of a host. What it says of another host is refused.
func (s *Server) call(w http.ResponseWriter, r *http.Request, host kurabe.HostID) {
	ctx, cancel := context.WithTimeout(r.Context(), callTime)
	defer cancel()
	if err := s.spend(host, r); err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	var out any = struct{}{}
	var err error
	switch r.PathValue("call") {
	case callAlive:
		e, elected := s.elected()
		if !elected {
			s.misdirect(w)
			return
		}
		out, err = take(w, r, func(q Alive) (any, error) { return s.alive(ctx, e, host, q) })
	case callRenew:
		out, err = take(w, r, func(q renewRequest) (any, error) {
			cert, err := s.Renew(ctx, host, q.CSRPEM)
			return certAnswer{cert}, err
		})
	case callPutReport:
		_, err = take(w, r, func(q kurabe.InstanceReport) (any, error) { return nil, s.putReport(ctx, host, q) })
	case callPutSnapshotReport:
		_, err = take(w, r, func(q kurabe.SnapshotReport) (any, error) { return nil, s.putReport(ctx, host, q) })
	case callDropReport:
		_, err = take(w, r, func(q dropRequest) (any, error) { return nil, s.Link.DropReport(ctx, host, q.Instance.Ref()) })
	case callDropSnapshotReport:
		_, err = take(w, r, func(q dropRequest) (any, error) { return nil, s.Link.DropReport(ctx, host, q.Snapshot.Ref()) })
	case callPutTaskReport:
		_, err = take(w, r, func(q kurabe.TaskReport) (any, error) { return nil, s.putReport(ctx, host, q) })
	case callDropTaskReport:
		_, err = take(w, r, func(q dropRequest) (any, error) { return nil, s.dropReport(ctx, host, q.Task) })
	case callPutProxyReport:
		_, err = take(w, r, func(q kurabe.ProxyReport) (any, error) { return nil, s.putReport(ctx, host, q) })
	case callProxyUsers:
		out, err = take(w, r, func(q proxyUsersRequest) (any, error) { return s.Link.ProxyUsers(ctx, host, q.Proxy) })
	case callPutLogs:
		_, err = take(w, r, func(q kurabe.LogReport) (any, error) { return nil, s.putLogs(ctx, host, q) })
	case callPutHost:
		_, err = take(w, r, func(q kurabe.HostReport) (any, error) { return nil, s.putHost(ctx, host, q) })
	case callPutCatalog:
		_, err = take(w, r, func(q catalogRequest) (any, error) { return nil, s.putCatalog(ctx, host, q.Catalog) })
	case callSign:
		out, err = take(w, r, func(q SignRequest) (any, error) { return s.sign(ctx, host, q) })
	default:
		err = fmt.Errorf("%w: unknown call %.40q", ErrRefused, r.PathValue("call"))
	}
	switch {
	case err == errAnswered:
	case err != nil:
		refuse(w, statusOf(err), err)
	default:
		answer(w, out)
	}
}

// errAnswered says that a request could not be read, and was told so.
var errAnswered = fmt.Errorf("answered")

// take reads a request and does it.
func take[Q any](w http.ResponseWriter, r *http.Request, do func(Q) (any, error)) (any, error) {
	var q Q
	if !read(w, r, bodyBytesMax, &q) {
		return nil, errAnswered
	}
	return do(q)
}

// own refuses what a host says of another one.
func own(host, named kurabe.HostID) error {
	if named != host {
		return fmt.Errorf("%w: host %s sends a call of host %.40q", ErrRefused, host, named)
	}
	return nil
}

// dropReport drops what a host reported of a thing of any kind.
func (s *Server) dropReport(ctx context.Context, host kurabe.HostID, ref kurabe.Ref) error {
	if !slices.Contains(kurabe.Kinds, ref.Kind) {
		return fmt.Errorf("%w: unknown kind %.40q", ErrRefused, ref.Kind)
	}
	return s.Link.DropReport(ctx, host, ref)
}

func (s *Server) putLogs(ctx context.Context, host kurabe.HostID, r kurabe.LogReport) error {
	if err := own(host, r.Host); err != nil {
		return err
	}
	r, err := s.ownLogs(ctx, host, r)
	if err != nil {
		return err
	}
	return s.Link.PutLogs(ctx, r)
}

// putHost takes note of what a host is: it has the zones that it joined with, and is a
// server of the service only if it joined as one.
func (s *Server) putHost(ctx context.Context, host kurabe.HostID, h kurabe.HostReport) error {
	joined, ok := s.View.JoinedHost(host)
	if !ok || !slices.Equal(h.Zones, joined.Value.Zones) || h.Server != (joined.Value.Server != nil) {
		return fmt.Errorf("%w: host %s has joined with the zones %v, not with %v", ErrRefused, host, joined.Value.Zones, h.Zones)
	}
	if err := own(host, h.Host); err != nil {
		return err
	}
	return s.Link.PutHost(ctx, h)
}

// putCatalog takes note of the parameters of an engine version that the host has. There is a
// record for each version, which nothing removes before the host: so there are not many.
func (s *Server) putCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error {
	entries, _, err := s.KV.List(ctx, store.CatalogPrefix(host))
	if err != nil {
		return err
	}
	key := store.CatalogPrefix(host) + string(c.Engine) + "/" + c.Version
	if len(entries) >= catalogsMax && !slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Key == key }) {
		return fmt.Errorf("%w: host %s has already reported %d engine versions", ErrRefused, host, len(entries))
	}
	return s.Link.PutCatalog(ctx, host, c)
}

// sign signs for servers that the host runs, and no other name or address: members of a
// group let each other in by them.
func (s *Server) sign(ctx context.Context, host kurabe.HostID, q SignRequest) (Certificate, error) {
	block, _ := pem.Decode(q.CSRPEM)
	if block == nil {
		return Certificate{}, fmt.Errorf("%w: not a certificate request in PEM", ErrRefused)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Certificate{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, kind := range []kurabe.Kind{kurabe.KindServer, kurabe.KindProxy} {
		entries, _, err := s.KV.List(ctx, store.AssignmentPrefix(host, kind))
		if err != nil {
			return Certificate{}, err
		}
		for _, e := range entries {
			if w, err := store.DecodeAssignment(e); err == nil && mayBe(w, csr.Subject.CommonName, q) {
				return s.Link.Sign(ctx, q)
			}
		}
	}
	return Certificate{}, fmt.Errorf("%w: host %s runs no server %.80q at %v %.200q", ErrRefused, host, csr.Subject.CommonName, q.IPs, q.DNSNames)
}

// mayBe says whether the server or proxy of an assignment may have a certificate of that name
// and those addresses: of a server engine.Instance.CertificateName has the rule.
func mayBe(w kurabe.Word, name string, q SignRequest) bool {
	var want string
	var names, addresses []string
	switch a := w.(type) {
	case kurabe.Assignment:
		want, names, addresses = a.Name, a.Names, []string{a.Address, a.ListensAt, a.ReaderAddress}
		if a.Role != nil {
			want = string(a.Instance)
		}
	case kurabe.ProxyAssignment:
		want, names = string(a.Proxy), a.Names
		for _, e := range a.Endpoints {
			addresses = append(addresses, e.Address)
		}
	}
	return name == want && !slices.ContainsFunc(q.DNSNames, func(dnsName string) bool { return !slices.Contains(names, dnsName) }) &&
		!slices.ContainsFunc(q.IPs, func(ip net.IP) bool { return !slices.Contains(addresses, ip.String()) })
}
