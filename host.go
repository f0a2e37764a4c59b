package kurabe

import "time"

// JoinedHost is a host beside the service's own that was let in with a token. The API
// writes it; its agent is heard only while the record is there.
type JoinedHost struct {
	ID       HostID    `json:"id"`
	Zones    []string  `json:"zones"`
	JoinedAt time.Time `json:"joinedAt"`
	// Key is the SHA-256 of the public key that the host joined with, in hex.
	Key string `json:"key"`
	// Drained says that nothing new is placed on it.
	Drained bool `json:"drained,omitempty"`
	// Gone says that it never comes back, with what is on it: a person's word. It is let in
	// no more.
	Gone bool `json:"gone,omitempty"`
}

// JoinToken lets one host in. The secret is known to whoever asked for it alone.
type JoinToken struct {
	ID        string    `json:"id"`
	Hash      string    `json:"hash"` // SHA-256 of the secret, in hex
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	// UsedBy is the host that it has let in, and Key is JoinedHost.Key: until it expires
	// that host with that key may ask again, since the answer may have been lost.
	UsedBy HostID `json:"usedBy,omitempty"`
	Key    string `json:"key,omitempty"`
}

// Presence says whether the agent of a joined host is heard. The server that it speaks to
// writes it, when that changes.
type Presence struct {
	Host  HostID    `json:"host"`
	Lost  bool      `json:"lost"`
	Since time.Time `json:"since"`
}
