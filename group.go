package kurabe

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// memberMark stands between the id of an instance and the number of a server of it. No id
// of an instance has it.
const memberMark = "~"

// Member names a server of an instance. The first has the instance's own id, so that an
// instance with one server is what it was; others are ID~2, ID~3. A number is never used
// again.
func (id InstanceID) Member(number int) InstanceID {
	if number == 1 {
		return id.Owner()
	}
	return id.Owner() + InstanceID(memberMark+strconv.Itoa(number))
}

// Owner is the instance that a server belongs to.
func (id InstanceID) Owner() InstanceID {
	owner, _, _ := strings.Cut(string(id), memberMark)
	return InstanceID(owner)
}

// Number is that of a server in its instance, from 1 on; 0 of what is no id of a member.
func (id InstanceID) Number() int {
	_, text, marked := strings.Cut(string(id), memberMark)
	if !marked {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || text != strconv.Itoa(n) {
		return 0
	}
	return n
}

// Epoch counts the writers of an instance: each has one of its own, higher than any
// before.
type Epoch int64

// Member is one server of an instance, and where it is.
type Member struct {
	ID   InstanceID `json:"id"`
	Host HostID     `json:"host"`
	Zone string     `json:"zone"`
	// ListensAt is the address of its server, "" of one that holds the instance's endpoint
	// itself.
	ListensAt string `json:"listensAt,omitempty"`
	// Leaving: it is taken out of the group; its record stays until nothing is left of it.
	Leaving bool `json:"leaving,omitempty"`
	// GivenUpSeq is the newest GivenUp of its report that users were told of.
	GivenUpSeq int64 `json:"givenUpSeq,omitempty"`
	// Waits is what of its count is part of the instance's.
	Waits WaitCount `json:"waits,omitzero"`
}

// Group is the only truth of who may write an instance with several servers. The planner
// alone writes it, and only over what it has read.
//
// A write is acknowledged only when a member of Sync has it, or Sync is empty; with Blocks
// only when another member has it. Logs are
// ordered, so of several members the one with most has all that was acknowledged; who that
// is can be told once none of them can get more. What makes this say less (another member
// who may have it, or nobody who must) is written here first and obeyed by the database
// second; what makes it say more is obeyed first and written second.
type Group struct {
	Instance InstanceID   `json:"instance"`
	Epoch    Epoch        `json:"epoch"`
	Writer   InstanceID   `json:"writer"`
	Sync     []InstanceID `json:"sync,omitempty"` // sorted; never the writer
	Members  []Member     `json:"members"`        // by number
	Last     int          `json:"last"`           // the highest number that was ever given
	// Handover is to whom the writer hands over in order, "" when it does not.
	Handover InstanceID `json:"handover,omitempty"`
	// Switch is the read replica that takes the place of this instance, "" of none: its writer
	// yields, and whoever takes this record away, or empties this field, has decided whether
	// the replica does. No more than one of the two can be written.
	Switch InstanceID `json:"switch,omitempty"`
	// Heir is to be the only one of Sync, so that the writer can hand over to it; "" when
	// nobody is.
	Heir InstanceID `json:"heir,omitempty"`
	// Choosing: the writer is dead or not heard, and nobody gets anything from it any more
	// since Epoch: whoever of Sync has most is to write.
	Choosing bool `json:"choosing,omitempty"`
	// Recovering is who is to write although it is not in Sync, because an operator has
	// accepted the loss, "" when nobody is. The writer ends first, for good.
	Recovering InstanceID `json:"recovering,omitempty"`
	// Outlasts is the epoch whose writer took over from one that was not heard, 0 for none.
	Outlasts Epoch `json:"outlasts,omitempty"`
	// Blocks: commits go on alone no more, since one of Sync had every commit while the policy
	// was StandbyLostBlock. Sync may become empty nevertheless: then nobody may take over, and
	// commits wait for whoever comes.
	Blocks bool `json:"blocks,omitempty"`
	// Since is when Sync became empty although there are other members: what could be
	// lost with the writer is what was written since.
	Since time.Time `json:"since,omitzero"`
}

// Has says whether a member is in Sync.
func (g *Group) Has(id InstanceID) bool { return slices.Contains(g.Sync, id) }

// Member returns a member of the group.
func (g *Group) Member(id InstanceID) (Member, bool) {
	n := slices.IndexFunc(g.Members, func(m Member) bool { return m.ID == id })
	if n < 0 {
		return Member{}, false
	}
	return g.Members[n], true
}

// Clone copies what could be changed.
func (g *Group) Clone() *Group {
	c := *g
	c.Sync, c.Members = slices.Clone(g.Sync), slices.Clone(g.Members)
	return &c
}
