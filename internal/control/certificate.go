package control

import (
	"time"

	"kurabe"
)

// Authority is what the API tells of the internal certificate authority.
type Authority struct {
	Identifier string
	Thumbprint string
	NotBefore  time.Time
	NotAfter   time.Time
}

// Certificates lists the certificate authorities; id "" takes all. There is one.
func (c *Control) Certificates(id string) ([]Authority, error) {
	if id != "" && id != c.Authority.Identifier {
		return nil, kurabe.Errorf(kurabe.CodeCertificateNotFound, "Certificate not found: %s; this service has %s", id, c.Authority.Identifier)
	}
	return []Authority{c.Authority}, nil
}
