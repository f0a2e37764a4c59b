package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Errors of a change of the members. They wrap the details.
var (
	// ErrUnhealthy: the members that would be left, or the ones that are there, are
	// too few that have heard each other for the last five seconds. Nothing was changed.
	ErrUnhealthy = errors.New("too few members of the state store answer")
	// ErrMember: there is one already, which has started.
	ErrMember = errors.New("this folder already has a member of the state store")
	// ErrRemoved: another member has taken this one out.
	ErrRemoved = errors.New("this server was removed from the service")
)

// promotePause is how soon a member that has not caught up is tried again.
const promotePause = 100 * time.Millisecond

// Member is one of the nodes that hold the state.
type Member struct {
	Peer    string // HOST:PORT where the others reach it, "" of a lone one
	Learner bool   // it receives the state and does not vote yet
}

const peerScheme = "https://"

func member(m *etcdserverpb.Member) Member {
	out := Member{Learner: m.IsLearner}
	for _, u := range m.PeerURLs {
		if peer, ok := strings.CutPrefix(u, peerScheme); ok {
			out.Peer = peer
		}
	}
	return out
}

// Members lists the nodes.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	r, err := n.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	var list []Member
	for _, m := range r.Members {
		list = append(list, member(m))
	}
	return list, nil
}

// Invite makes room for a node at peer, which has yet to start, and returns what it
// starts with: Peers.Cluster. It may be called again until that one has started. Only a node that
// the others reach can invite: see OpenPeers.
func (n *Node) Invite(ctx context.Context, peer string) (cluster string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := n.client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list members: %w", err)
	}
	members := r.Members
	for _, m := range members {
		switch there := member(m).Peer == peer; {
		case there && m.Name != "":
			// With an empty folder it would vote again on what it has voted on.
			return "", fmt.Errorf("%w at %s", ErrMember, peer)
		case !there && m.IsLearner:
			// etcd would drop one of two changes at a time, and not say so for seconds.
			return "", fmt.Errorf("%w: another server is joining", ErrUnhealthy)
		}
	}
	if !slices.ContainsFunc(members, func(m *etcdserverpb.Member) bool { return member(m).Peer == peer }) {
		r, err := n.client.MemberAddAsLearner(ctx, []string{peerScheme + peer})
		if err != nil {
			return "", fmt.Errorf("add a member at %s: %w", peer, unhealthy(err))
		}
		members = r.Members
	}
	var list []string
	for _, m := range members {
		// A node is known by its addresses; the names have to differ, no more.
		name := fmt.Sprintf("%x", m.ID)
		if member(m).Peer == peer {
			name = invited
		}
		for _, u := range m.PeerURLs {
			list = append(list, name+"="+u)
		}
	}
	return strings.Join(list, ","), nil
}

// invited is the name of a node that joins.
const invited = "kurabe-joined"

// Promote gives this node a vote, as soon as it has the state.
func (n *Node) Promote(ctx context.Context) error {
	for {
		if !n.etcd.Server.IsLearner() {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, requestTime)
		_, err := n.client.MemberPromote(attempt, uint64(n.etcd.Server.MemberID()))
		cancel()
		if errors.Is(err, rpctypes.ErrMemberNotLearner) {
			return nil
		}
		select {
		case <-time.After(promotePause):
		case <-n.Failed():
			return n.Err()
		case <-ctx.Done():
			return fmt.Errorf("become a full member of the state store: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// requestTime bounds one request about the members.
const requestTime = 5 * time.Second

// Remove takes the node at peer out, for good; one that is not there is no error.
// ErrUnhealthy when those that are left could not decide.
func (n *Node) Remove(ctx context.Context, peer string) error {
	r, err := n.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	for _, m := range r.Members {
		if member(m).Peer != peer {
			continue
		}
		if _, err := n.client.MemberRemove(ctx, m.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return fmt.Errorf("remove the member at %s: %w", peer, unhealthy(err))
		}
	}
	return nil
}

// TransferLeader makes another of three or more nodes etcd's leader where this one is. An
// election's holder does it: when its machine is lost, etcd then still has a leader, and
// counts the lease on instead of anew.
func (n *Node) TransferLeader(ctx context.Context) error {
	self := n.etcd.Server.MemberID()
	if n.etcd.Server.Leader() != self {
		return nil
	}
	r, err := n.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	votes := slices.DeleteFunc(r.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner })
	if len(votes) < 3 {
		return nil // one of two is the leader, and both are needed
	}
	for _, m := range votes {
		if m.ID == uint64(self) {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, electTimeout)
		_, err = n.client.MoveLeader(attempt, m.ID)
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("make another member the leader: %w", err)
}

// unhealthy gives what etcd refuses for the sake of its quorum a name of ours.
func unhealthy(err error) error {
	for _, refusal := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrTooManyLearners} {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %w", ErrUnhealthy, err)
		}
	}
	return err
}
