package store

import (
	"kurabe"
)

// PutJoinedHost writes a host that was let in, read at mod; 0 demands that there is none.
func (c *Change) PutJoinedHost(h kurabe.JoinedHost, mod int64) *Change {
	key := joinedHostKey(h.ID)
	return c.Require(key, mod).put(key, h, string(h.ID))
}

// DeleteJoinedHost removes a host that was read at mod, and what it said of itself. That
// nothing is assigned to it is the caller's to check, with RequireUnassigned.
func (c *Change) DeleteJoinedHost(id kurabe.HostID, mod int64) *Change {
	key := joinedHostKey(id)
	return c.Require(key, mod).Delete(key).Delete(hostReportKey(id)).Delete(logReportKey(id)).Delete(presenceKey(id))
}

// DropCatalog removes the parameters of an engine version as a host found them.
func (c *Change) DropCatalog(host kurabe.HostID, engine kurabe.EngineName, version string) *Change {
	return c.Delete(catalogKey(host, engine, version))
}

// RequireUnassigned demands that nothing was assigned to a host after revision.
func (c *Change) RequireUnassigned(host kurabe.HostID, revision int64) *Change {
	for _, kind := range kurabe.Kinds {
		c.RequireUnwritten(AssignmentPrefix(host, kind), revision)
	}
	return c
}

// PutJoinToken writes a token that was read at mod; 0 demands that there is none.
func (c *Change) PutJoinToken(t kurabe.JoinToken, mod int64) *Change {
	key := joinTokenKey(t.ID)
	return c.Require(key, mod).put(key, t, t.ID)
}

// DeleteJoinToken removes a token that was read at mod.
func (c *Change) DeleteJoinToken(id string, mod int64) *Change {
	key := joinTokenKey(id)
	return c.Require(key, mod).Delete(key)
}

// RequireUnheard demands that a host is still not heard, as it was at revision mod of its
// presence, 0 for one that nobody has spoken of.
func (c *Change) RequireUnheard(id kurabe.HostID, mod int64) *Change {
	return c.Require(presenceKey(id), mod)
}

// PutPresence writes whether a host is heard, as long as it is let in.
func (c *Change) PutPresence(p kurabe.Presence, joined int64) *Change {
	return c.Require(joinedHostKey(p.Host), joined).put(presenceKey(p.Host), p, string(p.Host))
}

// PutEndpointDomain writes what the names of endpoints end with; mod is the revision at which
// the record was read, 0 of none.
func (c *Change) PutEndpointDomain(d kurabe.EndpointDomain, mod int64) *Change {
	return c.Require(endpointDomain, mod).put(endpointDomain, d, "endpoint domain")
}

// EndpointDomain is what the names of endpoints end with; the zero value where nobody has
// said.
func (v *View) EndpointDomain() Record[kurabe.EndpointDomain] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.domain
}

// putDomain brings the record in: every endpoint's name follows from it.
func (s *state) putDomain(e Entry) (touch, error) {
	d, err := decode[kurabe.EndpointDomain](e)
	if err != nil {
		return touch{}, err
	}
	s.domain = Record[kurabe.EndpointDomain]{d, e.ModRevision}
	return touch{all: true}, nil
}

// PutSigningCertificate writes the certificate of a key with which a server signs notifications.
func (c *Change) PutSigningCertificate(s kurabe.SigningCertificate) *Change {
	return c.put(certificateKey(s.Name), s, s.Name)
}

// DeleteSigningCertificate removes one by its name.
func (c *Change) DeleteSigningCertificate(name string) *Change { return c.Delete(certificateKey(name)) }

// SigningCertificates returns all of them, by name.
func (v *View) SigningCertificates() []Record[kurabe.SigningCertificate] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.certificates)
}
