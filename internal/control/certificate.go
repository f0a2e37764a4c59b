package control

import "kurabe"

// Certificates lists the certificate authorities; id "" takes all. There is one.
func (c *Control) Certificates(id string) ([]Authority, error) {
	if id != "" && id != c.Authority.Identifier {
		return nil, kurabe.Errorf(kurabe.CodeCertificateNotFound, "Certificate not found: %s; this service has %s", id, c.Authority.Identifier)
	}
	return []Authority{c.Authority}, nil
}
