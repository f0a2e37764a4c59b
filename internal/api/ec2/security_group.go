package ec2

import (
	"context"
	"net/http"
	"slices"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/control/securitygroup"
)

// errorCodes are EC2's, by ours.
var errorCodes = api.Errors{
	securitygroup.CodeNotFound:      {Code: "InvalidGroup.NotFound", Status: 400},
	securitygroup.CodeExists:        {Code: "InvalidGroup.Duplicate", Status: 400},
	securitygroup.CodeQuota:         {Code: "SecurityGroupLimitExceeded", Status: 400},
	securitygroup.CodeInUse:         {Code: "DependencyViolation", Status: 400},
	securitygroup.CodeDefault:       {Code: "CannotDelete", Status: 400},
	securitygroup.CodeRuleExists:    {Code: "InvalidPermission.Duplicate", Status: 400},
	securitygroup.CodeRuleNotFound:  {Code: "InvalidPermission.NotFound", Status: 400},
	securitygroup.CodeRuleIDUnknown: {Code: "InvalidSecurityGroupRuleId.NotFound", Status: 400},
	securitygroup.CodeRuleQuota:     {Code: "RulesPerSecurityGroupLimitExceeded", Status: 400},
	securitygroup.CodeRuleMalformed: {Code: "InvalidPermission.Malformed", Status: 400},
}

// groupRows are the actions on security groups.
func (s service) groupRows() []api.Operation {
	return []api.Operation{
		api.Write("CreateSecurityGroup", s.createGroup),
		api.Write("DeleteSecurityGroup", s.deleteGroup),
		api.Read("DescribeSecurityGroups", s.securityGroups),
	}
}

type groupsInput struct {
	GroupId    []string
	GroupName  []string
	Filter     []filter
	DryRun     bool
	MaxResults *int32
	NextToken  string
}

type groupsOutput struct {
	Groups set[group] `xml:"securityGroupInfo"`
	page
}

type group struct {
	GroupID     string          `xml:"groupId"`
	ARN         string          `xml:"securityGroupArn"`
	GroupName   string          `xml:"groupName"`
	Description string          `xml:"groupDescription"`
	VpcID       string          `xml:"vpcId"`
	OwnerID     string          `xml:"ownerId"`
	In          set[permission] `xml:"ipPermissions"`
	Out         set[permission] `xml:"ipPermissionsEgress"`
	Tags        *set[tag]       `xml:"tagSet"`
}

// permission is the rules of one protocol and one range of ports.
type permission struct {
	Protocol string       `xml:"ipProtocol"`
	FromPort *int         `xml:"fromPort"`
	ToPort   *int         `xml:"toPort"`
	Ranges   set[cidr4]   `xml:"ipRanges"`
	Ranges6  set[cidr6]   `xml:"ipv6Ranges"`
	Lists    set[noValue] `xml:"prefixListIds"`
	Groups   set[noValue] `xml:"groups"`
}

// noValue is a member of lists that are always empty.
type noValue struct{}

type cidr4 struct {
	CIDR        string `xml:"cidrIp"`
	Description string `xml:"description,omitempty"`
}

type cidr6 struct {
	CIDR        string `xml:"cidrIpv6"`
	Description string `xml:"description,omitempty"`
}

var groupFields = fields[group]{
	"group-id": func(g group) string { return g.GroupID }, "group-name": func(g group) string { return g.GroupName },
	"description": func(g group) string { return g.Description }, "vpc-id": func(g group) string { return g.VpcID },
	"owner-id": func(g group) string { return g.OwnerID },
}

// texts are those of the filters of rules and tags.
func (g group) texts(filter string) (texts []string, known bool) {
	for _, side := range []struct {
		prefix string
		of     set[permission]
	}{{"ip-permission.", g.In}, {"egress.ip-permission.", g.Out}} {
		for _, p := range append(side.of.Items, permission{}) { // the empty one makes the names known
			for name, values := range p.texts() {
				if filter == side.prefix+name {
					texts, known = append(texts, values...), true
				}
			}
		}
	}
	if known {
		return texts, true
	}
	return tagTexts(g.Tags, filter)
}

func (p permission) texts() map[string][]string {
	m := map[string][]string{"protocol": nil, "from-port": nil, "to-port": nil, "cidr": nil, "ipv6-cidr": nil, "group-id": nil, "group-name": nil, "prefix-list-id": nil, "user-id": nil}
	if p.Protocol == "" {
		return m
	}
	m["protocol"] = []string{p.Protocol}
	if p.FromPort != nil {
		m["from-port"], m["to-port"] = []string{number(*p.FromPort)}, []string{number(*p.ToPort)}
	}
	for _, r := range p.Ranges.Items {
		m["cidr"] = append(m["cidr"], r.CIDR)
	}
	for _, r := range p.Ranges6.Items {
		m["ipv6-cidr"] = append(m["ipv6-cidr"], r.CIDR)
	}
	return m
}

func (s service) securityGroups(_ context.Context, in *groupsInput) (*groupsOutput, error) {
	var all []group
	for _, g := range s.c.SecurityGroups() {
		all = append(all, s.group(g))
	}
	absent := notFound("InvalidGroup", "security group")
	if len(in.GroupName) > 0 {
		named, err := match(all, request{ids: in.GroupName}, "group-name", groupFields, absent)
		if err != nil {
			return nil, err
		}
		if len(in.GroupId) == 0 {
			all = named
		}
	}
	got, next, err := find(all, request{in.GroupId, in.Filter, in.DryRun, in.MaxResults, in.NextToken}, "group-id", groupFields, absent)
	return &groupsOutput{set[group]{got}, next}, err
}

func (s service) group(g kurabe.SecurityGroup) group {
	return group{
		GroupID: g.ID, ARN: s.arn("security-group", g.ID), GroupName: g.Name, Description: g.Description, VpcID: s.c.NetworkID(), OwnerID: s.c.Account,
		In: permissionsOf(g, false), Out: permissionsOf(g, true), Tags: tagSet(g.Tags),
	}
}

func (s service) arn(kind, id string) string {
	return "arn:aws:ec2:" + s.c.Region + ":" + s.c.Account + ":" + kind + "/" + id
}

// permissionsOf gathers the rules of one direction as EC2 shows them.
func permissionsOf(g kurabe.SecurityGroup, egress bool) (out set[permission]) {
	for _, r := range g.Rules {
		if r.Egress != egress {
			continue
		}
		from, to := portsOf(r)
		n := slices.IndexFunc(out.Items, func(p permission) bool {
			return p.Protocol == r.Protocol && (from == nil) == (p.FromPort == nil) && (from == nil || *from == *p.FromPort && *to == *p.ToPort)
		})
		if n < 0 {
			n = len(out.Items)
			out.Items = append(out.Items, permission{Protocol: r.Protocol, FromPort: from, ToPort: to})
		}
		p := &out.Items[n]
		if isIPv6(r) {
			p.Ranges6.Items = append(p.Ranges6.Items, cidr6{r.Network, r.Description})
		} else {
			p.Ranges.Items = append(p.Ranges.Items, cidr4{r.Network, r.Description})
		}
	}
	return out
}

// portsOf are the ports that a permission shows: none for all protocols and those without ports.
func portsOf(r kurabe.SecurityRule) (from, to *int) {
	switch r.Protocol {
	case "tcp", "udp", "icmp", "icmpv6":
		return &r.FromPort, &r.ToPort
	}
	return nil, nil
}

type createGroupInput struct {
	GroupName        string
	GroupDescription string
	VpcId            string
	TagSpecification []tagSpecification
	DryRun           bool
}

type createGroupOutput struct {
	Return  bool      `xml:"return"`
	GroupID string    `xml:"groupId"`
	ARN     string    `xml:"securityGroupArn"`
	Tags    *set[tag] `xml:"tagSet"`
}

func (s service) createGroup(ctx context.Context, in *createGroupInput) (*createGroupOutput, error) {
	switch {
	case in.GroupName == "":
		return nil, missing("GroupName")
	case in.GroupDescription == "":
		return nil, missing("GroupDescription")
	case in.VpcId != "" && in.VpcId != s.c.NetworkID():
		return nil, notFound("InvalidVpcID", "vpc ID")(in.VpcId)
	}
	tags, err := tagsFor(in.TagSpecification, "security-group")
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return nil, errDryRun
	}
	g, err := s.c.CreateSecurityGroup(ctx, in.GroupName, in.GroupDescription, tags)
	if err != nil {
		return nil, err
	}
	return &createGroupOutput{true, g.ID, s.arn("security-group", g.ID), tagSet(g.Tags)}, nil
}

type groupInput struct {
	GroupId   string
	GroupName string
	DryRun    bool
}

type deleteGroupOutput struct {
	Return  bool   `xml:"return"`
	GroupID string `xml:"groupId"`
}

func (s service) deleteGroup(ctx context.Context, in *groupInput) (*deleteGroupOutput, error) {
	id, err := s.groupID(in.GroupId, in.GroupName)
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return nil, errDryRun
	}
	return &deleteGroupOutput{true, id}, s.c.DeleteSecurityGroup(ctx, id)
}

// groupID is the group that a request names by its id, or, in the default VPC, by its name.
func (s service) groupID(id, name string) (string, error) {
	if id == "" && name == "" {
		return "", missing("GroupName or GroupId")
	}
	for _, g := range s.c.SecurityGroups() {
		if g.ID == id || id == "" && g.Name == name {
			return g.ID, nil
		}
	}
	if id == "" {
		id = name
	}
	return "", notFound("InvalidGroup", "security group")(id)
}

func missing(parameter string) error {
	return fault.New(http.StatusBadRequest, "MissingParameter", "The request must contain the parameter %s", parameter)
}
