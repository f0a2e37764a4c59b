package control

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// Bounds of how long a join token is good for.
const (
	JoinTokenValidity    = time.Hour
	joinTokenValidityMax = 7 * 24 * time.Hour
	// joinTokensMax bounds the tokens that are there at a time.
	joinTokensMax = 100
)

// HostInfo is what is known of a host.
type HostInfo struct {
	ID       kurabe.HostID
	Planner  bool               // the elected planner runs on it
	Joined   *kurabe.JoinedHost // nil of the service's own while it has one server
	Presence *kurabe.Presence   // nil: nobody has said
	Report   *kurabe.HostReport // nil: it has not spoken
	// Servers and Snapshots are assigned to it, Holds names them for people; ReservedBytes is
	// the memory of the servers.
	Servers       []kurabe.InstanceID
	Snapshots     []kurabe.SnapshotID
	Holds         []string
	ReservedBytes int64
}

// AddJoinToken stores a token that was made by the caller. hash is that of its secret.
func (c *Control) AddJoinToken(ctx context.Context, id, hash string, validity time.Duration) (kurabe.JoinToken, error) {
	return c.addToken(ctx, kurabe.JoinToken{ID: id, Hash: hash}, validity)
}

// AddServerToken is AddJoinToken for a server of the service.
func (c *Control) AddServerToken(ctx context.Context, id, hash string, validity time.Duration) (kurabe.JoinToken, error) {
	return c.addToken(ctx, kurabe.JoinToken{ID: id, Hash: hash, Server: true}, validity)
}

func (c *Control) addToken(ctx context.Context, t kurabe.JoinToken, validity time.Duration) (kurabe.JoinToken, error) {
	if validity < time.Minute || validity > joinTokenValidityMax {
		return kurabe.JoinToken{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "a join token is good for one minute to %s, not for %s", joinTokenValidityMax, validity)
	}
	now := c.Now().UTC()
	t.CreatedAt, t.ExpiresAt = now, now.Add(validity)
	return t, c.Update(ctx, func() (*store.Change, error) {
		change := store.NewChange().PutJoinToken(t, 0)
		left := 0
		for _, old := range c.View.JoinTokens() {
			if now.Before(old.Value.ExpiresAt) {
				left++
			} else {
				change.DeleteJoinToken(old.Value.ID, old.ModRevision)
			}
		}
		if left >= joinTokensMax {
			return nil, kurabe.Errorf(kurabe.CodeThrottled, "%d join tokens are good at this moment; wait until some have expired", left)
		}
		return change, nil
	})
}

// AdmitHost lets a host in that brings a token. key is the digest of its public key: the
// same host with the same key may ask again while the token is good, since the answer may
// have been lost; nobody else may.
func (c *Control) AdmitHost(ctx context.Context, token, hash string, h kurabe.JoinedHost) error {
	return c.Update(ctx, func() (*store.Change, error) {
		now := c.Now().UTC()
		t, ok := c.View.JoinToken(token)
		// A stranger hears of nothing but the token.
		switch {
		case !ok, subtle.ConstantTimeCompare([]byte(t.Value.Hash), []byte(hash)) != 1, !now.Before(t.Value.ExpiresAt):
			return nil, errUnknownToken
		case t.Value.UsedBy != "" && (t.Value.UsedBy != h.ID || t.Value.Key != h.Key):
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the join token was used, by host %s; kurabe hosts token makes a new one", t.Value.UsedBy)
		case t.Value.Server != (h.Server != nil):
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the join token is for %s; kurabe hosts token makes one for an agent, and with --server one for a server of the service", tokenUse(t.Value))
		case c.View.Gone(h.ID):
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "host %s was given up for good; an empty data folder gets a name of its own", h.ID)
		}
		if err := c.checkHostZones(h.Zones); err != nil {
			return nil, err
		}
		if err := c.checkServerPlace(h); err != nil {
			return nil, err
		}
		joined, known := c.View.JoinedHost(h.ID)
		if _, reports := c.View.Host(h.ID); known && joined.Value.Key != h.Key || !known && reports {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "there is a host %s already; an empty data folder gets a name of its own", h.ID)
		}
		h.JoinedAt = now
		if known {
			h.JoinedAt, h.Drained = joined.Value.JoinedAt, joined.Value.Drained
		}
		t.Value.UsedBy, t.Value.Key = h.ID, h.Key
		return store.NewChange().PutJoinedHost(h, joined.ModRevision).PutJoinToken(t.Value, t.ModRevision), nil
	})
}

// checkServerPlace refuses a server at the address of another one: servers are known by it
// among those that hold the state, and one would be removed for the other.
func (c *Control) checkServerPlace(h kurabe.JoinedHost) error {
	if h.Server == nil {
		return nil
	}
	for _, other := range c.View.Servers() {
		samePeer := h.Server.Peer != "" && other.Value.Server.Peer == h.Server.Peer // "" where the state is in an etcd of others
		if other.Value.ID != h.ID && (other.Value.Server.Link == h.Server.Link || samePeer) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "server %s has that address: give it up or remove it first", other.Value.ID)
		}
	}
	return nil
}

func tokenUse(t kurabe.JoinToken) string {
	if t.Server {
		return "a server of the service"
	}
	return "an agent"
}

func (c *Control) checkHostZones(zones []string) error {
	if len(zones) == 0 {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the host names no zone; the zones are %s", strings.Join(c.Zones, ", "))
	}
	for _, zone := range zones {
		if !slices.Contains(c.Zones, zone) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "there is no zone %.40q; the zones are %s", zone, strings.Join(c.Zones, ", "))
		}
	}
	return nil
}

// Hosts lists the hosts, by id.
func (c *Control) Hosts() []HostInfo {
	byID := map[kurabe.HostID]*HostInfo{}
	var list []HostInfo
	info := func(id kurabe.HostID) *HostInfo {
		if byID[id] == nil {
			byID[id] = &HostInfo{ID: id}
		}
		return byID[id]
	}
	for _, r := range c.View.Hosts() {
		info(r.Host).Report = &r
	}
	for _, j := range c.View.JoinedHosts() {
		h := info(j.Value.ID)
		h.Joined = &j.Value
		if p, ok := c.View.Presence(j.Value.ID); ok {
			h.Presence = &p
		}
	}
	for id, h := range byID {
		h.Planner = id == c.View.Planner()
		h.Servers, h.Snapshots = c.View.Assigned(id)
		h.Holds = c.whatIsOn(h.Servers, h.Snapshots)
		h.ReservedBytes = c.ReservedOn(id, "")
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b HostInfo) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// DrainHost says that nothing new is placed on a host, or that it is again.
func (c *Control) DrainHost(ctx context.Context, id kurabe.HostID, drained bool) error {
	return c.Update(ctx, func() (*store.Change, error) {
		h, err := c.joined(id)
		if err != nil || h.Value.Drained == drained {
			return nil, err
		}
		h.Value.Drained = drained
		return store.NewChange().PutJoinedHost(h.Value, h.ModRevision), nil
	})
}

// GiveUpHost stores a person's word that a host which is not heard never comes back. Its
// instances fail, and can be deleted then.
func (c *Control) GiveUpHost(ctx context.Context, id kurabe.HostID) error {
	return c.Update(ctx, func() (*store.Change, error) {
		h, err := c.joined(id)
		if err != nil || h.Value.Gone {
			return nil, err
		}
		if c.View.LostSince(id).IsZero() {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "host %s is heard, and is not given up: drain and remove it", id)
		}
		// At once, so that another one can take its place among those that hold the state.
		if err := c.removeMember(ctx, h.Value); err != nil {
			return nil, err
		}
		// It has no place any more: another server may take its address.
		h.Value.Drained, h.Value.Gone, h.Value.Server = true, true, nil
		change := store.NewChange().PutJoinedHost(h.Value, h.ModRevision)
		c.spendTokens(change, id)
		return change, nil
	})
}

// spendTokens removes what a host has joined with: until it expires, the same host may ask
// again with it, and one that is let in no more may not.
func (c *Control) spendTokens(change *store.Change, id kurabe.HostID) {
	for _, t := range c.View.JoinTokens() {
		if t.Value.UsedBy == id {
			change.DeleteJoinToken(t.Value.ID, t.ModRevision)
		}
	}
}

// CheckJoinToken says whether a token is one that may let somebody in, before anything that
// costs is done for whoever brings it. It spends nothing.
func (c *Control) CheckJoinToken(token, hash string) error {
	t, ok := c.View.JoinToken(token)
	if !ok || subtle.ConstantTimeCompare([]byte(t.Value.Hash), []byte(hash)) != 1 || !c.Now().UTC().Before(t.Value.ExpiresAt) {
		return errUnknownToken
	}
	return nil
}

var errUnknownToken = kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the join token is not known or has expired; kurabe hosts token makes a new one")

// RemoveHost lets a host in no more. It is refused while anything is assigned to it.
func (c *Control) RemoveHost(ctx context.Context, id kurabe.HostID) error {
	return c.Update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		h, err := c.joined(id)
		if err != nil {
			return nil, err
		}
		if !h.Value.Drained {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "something may be placed on host %s at any moment: drain it first", id)
		}
		if servers, snapshots := c.View.Assigned(id); len(servers)+len(snapshots) > 0 {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "host %s has %s; delete them first", id, strings.Join(c.whatIsOn(servers, snapshots), ", "))
		}
		if err := c.removeMember(ctx, h.Value); err != nil {
			return nil, err
		}
		if err := c.dropReports(ctx, id, h.Value.Gone); err != nil {
			return nil, err
		}
		change := store.NewChange().RequireUnassigned(id, revision).DeleteJoinedHost(id, h.ModRevision)
		c.spendTokens(change, id)
		if r, ok := c.View.Host(id); ok {
			for _, v := range r.Engines {
				change.DropCatalog(id, v.Engine, v.Version)
			}
		}
		return change, nil
	})
}

// removeMember takes a server of the service out of those that hold the state. It is done
// before the record goes: it may be refused, and may be done again.
func (c *Control) removeMember(ctx context.Context, h kurabe.JoinedHost) error {
	if h.Server == nil || c.RemoveMember == nil {
		return nil
	}
	return c.RemoveMember(ctx, h)
}

// dropReports removes what a host that is gone has said, in its agent's place.
func (c *Control) dropReports(ctx context.Context, id kurabe.HostID, gone bool) error {
	if !gone {
		return nil
	}
	for _, kind := range kurabe.Kinds {
		entries, _, err := c.KV.List(ctx, store.ThingReportPrefix(id, kind))
		if err != nil {
			return scope.Error(err)
		}
		for part := range slices.Chunk(entries, store.TxnOpsMax) {
			change := store.NewChange()
			for _, e := range part {
				change.Delete(e.Key)
			}
			if err := c.Commit(ctx, change); err != nil {
				return scope.Error(err)
			}
		}
	}
	return nil
}

// whatIsOn names what a host has, as users know it; not more than people read.
func (c *Control) whatIsOn(servers []kurabe.InstanceID, snapshots []kurabe.SnapshotID) []string {
	var names []string
	for _, id := range servers {
		name := string(id)
		if i, ok := c.View.Instance(id.Owner()); ok && i.Spec != nil {
			name = i.Spec.Name
		}
		names = append(names, "DB instance "+name)
	}
	for _, id := range snapshots {
		name := string(id)
		if s, ok := c.View.AnySnapshot(id); ok && s.Spec != nil {
			name = s.Spec.Name
		}
		names = append(names, "snapshot "+name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 10
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return names
}

func (c *Control) joined(id kurabe.HostID) (store.Record[kurabe.JoinedHost], error) {
	h, ok := c.View.JoinedHost(id)
	if ok {
		return h, nil
	}
	if _, reports := c.View.Host(id); reports {
		return h, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "a server of the service runs on host %s: it stays as long as that", id)
	}
	return h, kurabe.Errorf(kurabe.CodeResourceNotFound, "there is no host %.80q; kurabe hosts lists them", id)
}
