package kurabe

import "time"

// JoinedHost is a host beside the service's own that was let in with a token, and, where
// the service has several servers, each of theirs. The API writes it; its agent is heard
// only while the record is there.
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
	// Server is where the server of the service is reached that runs on it, nil of others.
	// That server keeps it true.
	Server *ServerPlace `json:"server,omitempty"`
}

// ServerPlace is where one of several servers of the service is reached, HOST:PORT each.
type ServerPlace struct {
	Link string `json:"link"` // by hosts, and servers that join
	Peer string `json:"peer"` // by the other members of the state store
}

// JoinToken lets one host in. The secret is known to whoever asked for it alone.
type JoinToken struct {
	ID string `json:"id"`
	// Server says that it lets a server of the service in, and nothing else.
	Server    bool      `json:"server,omitempty"`
	Hash      string    `json:"hash"` // SHA-256 of the secret, in hex
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	// UsedBy is the host that it has let in, and Key is JoinedHost.Key: until it expires
	// that host with that key may ask again, since the answer may have been lost.
	UsedBy HostID `json:"usedBy,omitempty"`
	Key    string `json:"key,omitempty"`
}

// Presence says whether the agent of a joined host is heard. The elected planner's server,
// which alone is spoken to, writes it when that changes.
type Presence struct {
	Host  HostID    `json:"host"`
	Lost  bool      `json:"lost"`
	Since time.Time `json:"since"`
	// SilentFor is how long it has announced to say nothing, in its newest word: its writers
	// may serve for as long.
	SilentFor time.Duration `json:"silentFor,omitempty"`
	// MachineRun is which machine, and from which start of it on, is this host: no other one is heard
	// until the host is lost.
	MachineRun string `json:"life,omitempty"`
	// Double is there while another machine comes with the identity of this host.
	Double *Double `json:"double,omitempty"`
}

// Double is a machine that was refused because another one is the host that it says it is: a
// copy of that machine, or of its data folder.
type Double struct {
	From  string    `json:"from"` // its address, as it was seen first
	Since time.Time `json:"since"`
}
