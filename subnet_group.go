package kurabe

import "time"

// Subnet is one member of a subnet group. Kurabe has one flat network, so a
// subnet is a label that names a zone.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
}

// SubnetGroup names the zones that an instance may be placed in. The API writes
// it.
type SubnetGroup struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Subnets     []Subnet  `json:"subnets"`
	Tags        []Tag     `json:"tags,omitempty"`
	Revision    int64     `json:"revision"`
	CreatedAt   time.Time `json:"createdAt"`
}
