package securitygroup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/network"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// The codes that only EC2 has a use for.
const (
	CodeNotFound      kurabe.Code = "vpc-security-group-not-found"
	CodeExists        kurabe.Code = "vpc-security-group-exists"
	CodeQuota         kurabe.Code = "vpc-security-group-quota"
	CodeInUse         kurabe.Code = "vpc-security-group-in-use"
	CodeDefault       kurabe.Code = "vpc-security-group-is-default"
	CodeRuleExists    kurabe.Code = "security-rule-exists"
	CodeRuleNotFound  kurabe.Code = "security-rule-not-found"
	CodeRuleIDUnknown kurabe.Code = "security-rule-id-unknown"
	CodeRuleQuota     kurabe.Code = "security-rule-quota"
	CodeRuleMalformed kurabe.Code = "security-rule-malformed"
)

const (
	groupsMax = 2500 // EC2's quota of a region
	rulesMax  = 60   // EC2's quota of a group, in each direction
	// recordBytesMax bounds what descriptions and tags of rules add: a record of the store has at
	// most 100 KiB.
	recordBytesMax = 90 << 10
)

// Set is the security groups of a scope.
type Set struct{ scope.Scope }

// DefaultGroupID is the id of the default group, as EC2's API gives it.
func (c Set) DefaultGroupID() string { return network.Network{Scope: c.Scope}.SecurityGroupID() }

// recordID is the id that records have for an id of EC2's, shownID the reverse.
func (c Set) recordID(id string) string {
	if id == c.DefaultGroupID() {
		return kurabe.DefaultSecurityGroup
	}
	return id
}

func (c Set) shownID(id string) string {
	if id == kurabe.DefaultSecurityGroup {
		return c.DefaultGroupID()
	}
	return id
}

// record reads a group by its id in records; of the default one that nobody has changed there is
// no record, and its revision is 0.
func (c Set) record(id string) (store.Record[kurabe.SecurityGroup], bool) {
	r, ok := c.View.SecurityGroup(id)
	if !ok && id == kurabe.DefaultSecurityGroup {
		r.Value, ok = kurabe.OpenSecurityGroup(), true
	}
	return r, ok
}

func (c Set) find(id string) (store.Record[kurabe.SecurityGroup], error) {
	r, ok := c.record(c.recordID(id))
	if !ok || id == kurabe.DefaultSecurityGroup {
		return r, kurabe.Errorf(CodeNotFound, "The security group '%.100s' does not exist", id)
	}
	r.Value.Rules = slices.Clone(r.Value.Rules)
	return r, nil
}

// SecurityGroups lists every group, the default one first.
func (c Set) SecurityGroups() []kurabe.SecurityGroup {
	def, _ := c.record(kurabe.DefaultSecurityGroup)
	list := []kurabe.SecurityGroup{def.Value}
	for _, r := range c.View.SecurityGroups() {
		if r.Value.ID != kurabe.DefaultSecurityGroup {
			list = append(list, r.Value)
		}
	}
	list[0].ID = c.DefaultGroupID()
	return list
}

// groupName is EC2's rule.
var groupName = regexp.MustCompile(`^[a-zA-Z0-9 ._:/()#,@\[\]+=&;{}!$*-]{1,255}$`)

// CreateSecurityGroup stores a new group, from which everything may be reached, as on EC2.
func (c Set) CreateSecurityGroup(ctx context.Context, name, description string, tags []kurabe.Tag) (kurabe.SecurityGroup, error) {
	g := kurabe.SecurityGroup{ID: newID("sg-"), Name: name, Description: description, Tags: tags, CreatedAt: c.Now().UTC()}
	g.Rules = []kurabe.SecurityRule{{ID: newID("sgr-"), Egress: true, Protocol: kurabe.AnyProtocol, FromPort: -1, ToPort: -1, Network: kurabe.AllIPv4}}
	switch {
	case !groupName.MatchString(name):
		return g, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Value (%.100s) for parameter GroupName is invalid. Character sets beyond ASCII are not supported.", name)
	case strings.HasPrefix(strings.ToLower(name), "sg-"):
		return g, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "invalid value for parameter groupName: %s. Group names may not be in the format sg-*", name)
	case name == "default":
		return g, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Cannot use reserved security group name: default")
	case !groupName.MatchString(description):
		return g, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Value (%.100s) for parameter GroupDescription is invalid. Character sets beyond ASCII are not supported.", description)
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return g, err
	}
	return g, c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		all := c.SecurityGroups()
		if slices.ContainsFunc(all, func(o kurabe.SecurityGroup) bool { return o.Name == name }) {
			return nil, kurabe.Errorf(CodeExists, "The security group '%s' already exists for VPC '%s'", name, network.Network{Scope: c.Scope}.NetworkID())
		}
		if len(all) >= groupsMax {
			return nil, kurabe.Errorf(CodeQuota, "The maximum number of security groups, %d, has been reached", groupsMax)
		}
		return store.NewChange().PutSecurityGroup(g, 0).RequireSecurityGroupsUnwritten(revision), nil
	})
}

// DeleteSecurityGroup removes a group that nothing has.
func (c Set) DeleteSecurityGroup(ctx context.Context, id string) error {
	return c.Update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		g, err := c.find(id)
		if err != nil {
			return nil, err
		}
		if g.Value.ID == kurabe.DefaultSecurityGroup {
			return nil, kurabe.Errorf(CodeDefault, "the specified group: %q name: %q cannot be deleted by a user", id, g.Value.Name)
		}
		if c.used(g.Value.ID) {
			return nil, kurabe.Errorf(CodeInUse, "resource %s has a dependent object", id)
		}
		return store.NewChange().DeleteSecurityGroup(g.Value.ID, g.ModRevision).RequireInstancesUnwritten(revision), nil
	})
}

// used says whether anything has a group, or still is filtered by it.
func (c Set) used(id string) bool {
	return slices.ContainsFunc(c.View.Instances(), func(i *store.Instance) bool {
		return slices.Contains(kurabe.GroupsOf(i.Spec.SecurityGroups), id) || i.Status != nil && slices.Contains(i.Status.SecurityGroups, id)
	})
}

// change edits a group, and refuses what the hosts could not enforce.
func (c Set) change(ctx context.Context, id string, edit func(*kurabe.SecurityGroup) error) error {
	return c.Update(ctx, func() (*store.Change, error) {
		g, err := c.find(id)
		if err != nil {
			return nil, err
		}
		if err := edit(&g.Value); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(g.Value)
		if err != nil {
			return nil, err
		}
		if len(raw) > recordBytesMax {
			return nil, kurabe.Errorf(CodeRuleQuota, "the rules of %s with their descriptions and tags have more than %d bytes", id, recordBytesMax)
		}
		if g.Value.ID == kurabe.DefaultSecurityGroup && len(c.View.Proxies()) > 0 && kurabe.FilterOf([]kurabe.SecurityGroup{g.Value}, 0) != nil {
			return nil, errProxies
		}
		if g.Value.ID == kurabe.DefaultSecurityGroup || c.used(g.Value.ID) {
			if err := c.enforceable([]kurabe.SecurityGroup{g.Value}); err != nil {
				return nil, err
			}
		}
		return store.NewChange().PutSecurityGroup(g.Value, g.ModRevision), nil
	})
}

// EditTags changes the tags of a group or of a rule, by its id.
func (c Set) EditTags(ctx context.Context, id string, edit func([]kurabe.Tag) []kurabe.Tag) error {
	group := id
	if strings.HasPrefix(id, "sgr-") {
		owner, _, err := c.findRule(id)
		if err != nil {
			return err
		}
		group = owner.ID
	}
	return c.change(ctx, group, func(g *kurabe.SecurityGroup) error {
		tags := &g.Tags
		if group != id {
			n := slices.IndexFunc(g.Rules, func(r kurabe.SecurityRule) bool { return r.ID == id })
			if n < 0 {
				return ruleUnknown(id)
			}
			tags = &g.Rules[n].Tags
		}
		*tags = edit(slices.Clone(*tags))
		return kurabe.CheckTags(*tags)
	})
}

// newID is a new id of EC2's form.
func newID(prefix string) string {
	var raw [9]byte
	rand.Read(raw[:])
	return prefix + hex.EncodeToString(raw[:])[:17]
}
