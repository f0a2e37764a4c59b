package store

import "kurabe"

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
