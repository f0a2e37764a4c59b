package ec2

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/control/securitygroup"
)

// ruleRows are the actions on the rules of security groups.
func (s service) ruleRows() []api.Operation {
	return []api.Operation{
		api.Write("AuthorizeSecurityGroupIngress", s.authorize(false)),
		api.Write("AuthorizeSecurityGroupEgress", s.authorize(true)),
		api.Write("RevokeSecurityGroupIngress", s.revoke(false)),
		api.Write("RevokeSecurityGroupEgress", s.revoke(true)),
		api.Read("DescribeSecurityGroupRules", s.securityRules),
		api.Write("ModifySecurityGroupRules", s.modifyRules),
		api.Write("UpdateSecurityGroupRuleDescriptionsIngress", s.describeRules(false)),
		api.Write("UpdateSecurityGroupRuleDescriptionsEgress", s.describeRules(true)),
	}
}

// permissionInput is rules of one protocol and one range of ports.
type permissionInput struct {
	IpProtocol    string
	FromPort      *int32
	ToPort        *int32
	IpRanges      []struct{ CidrIp, Description string }
	Ipv6Ranges    []struct{ CidrIpv6, Description string }
	PrefixListIds []struct{ PrefixListId, Description string }
	Groups        []struct{ UserId, GroupName, GroupId, VpcId, VpcPeeringConnectionId, PeeringStatus, Description string }
}

// rulesInput is the common part of requests that name rules. A single rule may stand outside of
// IpPermissions.
type rulesInput struct {
	GroupId                    string
	GroupName                  string
	IpPermissions              []permissionInput
	IpProtocol                 string
	FromPort                   *int32
	ToPort                     *int32
	CidrIp                     string
	SourceSecurityGroupName    string
	SourceSecurityGroupOwnerId string
	SecurityGroupRuleId        []string // of revocations
	TagSpecification           []tagSpecification
	DryRun                     bool
}

var (
	errNoSourceGroups = fault.New(http.StatusBadRequest, "UnsupportedOperation", "A security group cannot be the source or destination of a rule: members are database servers, whose connections come from the addresses of their hosts; name networks (CidrIp) instead")
	errNoPrefixLists  = fault.New(http.StatusBadRequest, "UnsupportedOperation", "There are no prefix lists; name networks (CidrIp) instead")
)

// rules are those that a request names in one direction.
func (in *rulesInput) rules(egress bool) ([]kurabe.SecurityRule, error) {
	permissions := in.IpPermissions
	if in.SourceSecurityGroupName != "" || in.SourceSecurityGroupOwnerId != "" {
		return nil, errNoSourceGroups
	}
	if in.CidrIp != "" || in.IpProtocol != "" {
		p := permissionInput{IpProtocol: in.IpProtocol, FromPort: in.FromPort, ToPort: in.ToPort}
		p.IpRanges = append(p.IpRanges, struct{ CidrIp, Description string }{CidrIp: in.CidrIp})
		permissions = append(permissions, p)
	}
	var rules []kurabe.SecurityRule
	for _, p := range permissions {
		switch {
		case len(p.Groups) > 0:
			return nil, errNoSourceGroups
		case len(p.PrefixListIds) > 0:
			return nil, errNoPrefixLists
		case p.IpProtocol == "":
			return nil, missing("ipProtocol")
		}
		add := func(network, text string, ipv6 bool) error {
			network, err := kurabe.CheckNetwork(network, ipv6)
			if err != nil {
				return err
			}
			r, err := securitygroup.CheckRule(kurabe.SecurityRule{Egress: egress, Protocol: p.IpProtocol, FromPort: or(p.FromPort), ToPort: or(p.ToPort), Network: network, Description: text})
			rules = append(rules, r)
			return err
		}
		for _, r := range p.IpRanges {
			if err := add(r.CidrIp, r.Description, false); err != nil {
				return nil, err
			}
		}
		for _, r := range p.Ipv6Ranges {
			if err := add(r.CidrIpv6, r.Description, true); err != nil {
				return nil, err
			}
		}
	}
	return rules, nil
}

// or is a port that was given, or that of none.
func or(port *int32) int {
	if port == nil {
		return -1
	}
	return int(*port)
}

func number(n int) string { return strconv.Itoa(n) }

func isIPv6(r kurabe.SecurityRule) bool { return strings.Contains(r.Network, ":") }

type rule struct {
	ID          string    `xml:"securityGroupRuleId"`
	ARN         string    `xml:"securityGroupRuleArn,omitempty"`
	GroupID     string    `xml:"groupId"`
	OwnerID     string    `xml:"groupOwnerId,omitempty"`
	Egress      bool      `xml:"isEgress"`
	Protocol    string    `xml:"ipProtocol"`
	FromPort    int       `xml:"fromPort"`
	ToPort      int       `xml:"toPort"`
	CIDR4       string    `xml:"cidrIpv4,omitempty"`
	CIDR6       string    `xml:"cidrIpv6,omitempty"`
	Description string    `xml:"description,omitempty"`
	Tags        *set[tag] `xml:"tagSet"`
}

func (r rule) texts(filter string) ([]string, bool) { return tagTexts(r.Tags, filter) }

var ruleFields = fields[rule]{
	"security-group-rule-id": func(r rule) string { return r.ID }, "group-id": func(r rule) string { return r.GroupID },
}

func (s service) rule(group string, r kurabe.SecurityRule) rule {
	out := rule{ID: r.ID, ARN: s.arn("security-group-rule", r.ID), GroupID: group, OwnerID: s.c.Account, Egress: r.Egress, Protocol: r.Protocol,
		FromPort: r.FromPort, ToPort: r.ToPort, Description: r.Description, Tags: tagSet(r.Tags)}
	if isIPv6(r) {
		out.CIDR6 = r.Network
	} else {
		out.CIDR4 = r.Network
	}
	return out
}

type authorizeOutput struct {
	Return bool      `xml:"return"`
	Rules  set[rule] `xml:"securityGroupRuleSet"`
}

func (s service) authorize(egress bool) func(context.Context, *rulesInput) (*authorizeOutput, error) {
	return func(ctx context.Context, in *rulesInput) (*authorizeOutput, error) {
		id, err := s.groupID(in.GroupId, in.GroupName)
		if err != nil {
			return nil, err
		}
		rules, err := in.rules(egress)
		if err != nil {
			return nil, err
		}
		if len(rules) == 0 || len(in.SecurityGroupRuleId) > 0 {
			return nil, missing("IpPermissions")
		}
		tags, err := tagsFor(in.TagSpecification, "security-group-rule")
		if err != nil {
			return nil, err
		}
		for n := range rules {
			rules[n].Tags = tags
		}
		if in.DryRun {
			return nil, errDryRun
		}
		rules, err = s.c.AddRules(ctx, id, rules)
		if err != nil {
			return nil, err
		}
		out := &authorizeOutput{Return: true}
		for _, r := range rules {
			out.Rules.Items = append(out.Rules.Items, s.rule(id, r))
		}
		return out, nil
	}
}

type revokeOutput struct {
	Return  bool      `xml:"return"`
	Revoked set[rule] `xml:"revokedSecurityGroupRuleSet"`
}

func (s service) revoke(egress bool) func(context.Context, *rulesInput) (*revokeOutput, error) {
	return func(ctx context.Context, in *rulesInput) (*revokeOutput, error) {
		id, err := s.groupID(in.GroupId, in.GroupName)
		if err != nil {
			return nil, err
		}
		rules, err := in.rules(egress)
		if err != nil {
			return nil, err
		}
		if len(rules)+len(in.SecurityGroupRuleId) == 0 || len(in.TagSpecification) > 0 {
			return nil, missing("IpPermissions or SecurityGroupRuleId")
		}
		if in.DryRun {
			return nil, errDryRun
		}
		gone, err := s.c.RemoveRules(ctx, id, egress, in.SecurityGroupRuleId, rules)
		if err != nil {
			return nil, err
		}
		out := &revokeOutput{Return: true}
		for _, r := range gone {
			shown := s.rule(id, r)
			shown.ARN, shown.OwnerID, shown.Tags = "", "", nil // EC2 does not show them
			out.Revoked.Items = append(out.Revoked.Items, shown)
		}
		return out, nil
	}
}

type securityRulesInput struct {
	SecurityGroupRuleId []string
	Filter              []filter
	DryRun              bool
	MaxResults          *int32
	NextToken           string
}

type securityRulesOutput struct {
	Rules set[rule] `xml:"securityGroupRuleSet"`
	page
}

func (s service) securityRules(_ context.Context, in *securityRulesInput) (*securityRulesOutput, error) {
	var all []rule
	for _, r := range s.c.Rules() {
		all = append(all, s.rule(r.Group, r.SecurityRule))
	}
	absent := func(id string) error {
		return fault.New(http.StatusBadRequest, "InvalidSecurityGroupRuleId.NotFound", "The security group rule ID '%.100s' does not exist", id)
	}
	got, next, err := find(all, request{in.SecurityGroupRuleId, in.Filter, in.DryRun, in.MaxResults, in.NextToken}, "security-group-rule-id", ruleFields, absent)
	return &securityRulesOutput{set[rule]{got}, next}, err
}

type modifyRulesInput struct {
	GroupId           string
	SecurityGroupRule []struct {
		SecurityGroupRuleId string
		SecurityGroupRule   *struct {
			IpProtocol, CidrIpv4, CidrIpv6, PrefixListId, ReferencedGroupId, Description string
			FromPort, ToPort                                                             *int32
		}
	}
	DryRun bool
}

type returnOutput struct {
	Return bool `xml:"return"`
}

func (s service) modifyRules(ctx context.Context, in *modifyRulesInput) (*returnOutput, error) {
	id, err := s.groupID(in.GroupId, "")
	if err != nil {
		return nil, err
	}
	by := map[string]kurabe.SecurityRule{}
	for _, m := range in.SecurityGroupRule {
		r := m.SecurityGroupRule
		switch {
		case m.SecurityGroupRuleId == "" || r == nil:
			return nil, missing("SecurityGroupRules.SecurityGroupRuleId and SecurityGroupRule")
		case r.ReferencedGroupId != "":
			return nil, errNoSourceGroups
		case r.PrefixListId != "":
			return nil, errNoPrefixLists
		case (r.CidrIpv4 == "") == (r.CidrIpv6 == ""):
			return nil, invalid("A rule has one of CidrIpv4 and CidrIpv6.")
		case r.IpProtocol == "":
			return nil, missing("IpProtocol")
		}
		network, err := kurabe.CheckNetwork(r.CidrIpv4+r.CidrIpv6, r.CidrIpv6 != "")
		if err != nil {
			return nil, err
		}
		if by[m.SecurityGroupRuleId], err = securitygroup.CheckRule(kurabe.SecurityRule{
			Protocol: r.IpProtocol, FromPort: or(r.FromPort), ToPort: or(r.ToPort), Network: network, Description: r.Description,
		}); err != nil {
			return nil, err
		}
	}
	switch {
	case len(by) == 0:
		return nil, missing("SecurityGroupRules")
	case in.DryRun:
		return nil, errDryRun
	}
	return &returnOutput{true}, s.c.ReplaceRules(ctx, id, by)
}

type descriptionsInput struct {
	GroupId                      string
	GroupName                    string
	IpPermissions                []permissionInput
	SecurityGroupRuleDescription []struct{ SecurityGroupRuleId, Description string }
	DryRun                       bool
}

func (s service) describeRules(egress bool) func(context.Context, *descriptionsInput) (*returnOutput, error) {
	return func(ctx context.Context, in *descriptionsInput) (*returnOutput, error) {
		id, err := s.groupID(in.GroupId, in.GroupName)
		if err != nil {
			return nil, err
		}
		rules, err := (&rulesInput{IpPermissions: in.IpPermissions}).rules(egress)
		if err != nil {
			return nil, err
		}
		byID := map[string]string{}
		for _, d := range in.SecurityGroupRuleDescription {
			byID[d.SecurityGroupRuleId] = d.Description
		}
		switch {
		case len(rules)+len(byID) == 0:
			return nil, missing("IpPermissions or SecurityGroupRuleDescriptions")
		case in.DryRun:
			return nil, errDryRun
		}
		return &returnOutput{true}, s.c.DescribeRules(ctx, id, egress, byID, rules)
	}
}
