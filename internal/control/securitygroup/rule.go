package securitygroup

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kurabe"
)

// RuleOf is a rule with the id of its group.
type RuleOf struct {
	kurabe.SecurityRule
	Group string
}

// Rules lists the rules of all groups.
func (c Set) Rules() []RuleOf {
	var list []RuleOf
	for _, g := range c.SecurityGroups() {
		for _, r := range g.Rules {
			list = append(list, RuleOf{r, g.ID})
		}
	}
	return list
}

func ruleUnknown(id string) error {
	return kurabe.Errorf(CodeRuleIDUnknown, "The security group rule ID '%.100s' does not exist", id)
}

func (c Set) findRule(id string) (kurabe.SecurityGroup, kurabe.SecurityRule, error) {
	for _, g := range c.SecurityGroups() {
		for _, r := range g.Rules {
			if r.ID == id {
				return g, r, nil
			}
		}
	}
	return kurabe.SecurityGroup{}, kurabe.SecurityRule{}, ruleUnknown(id)
}

// ruleText is EC2's set of characters for descriptions.
var ruleText = regexp.MustCompile(`^[a-zA-Z0-9 ._:/()#,@\[\]+=&;{}!$*-]{0,255}$`)

// protocols are the names of those that EC2 shows by name.
var protocols = map[string]string{"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": kurabe.AnyProtocol}

var protocolNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,2})$`)

// CheckRule folds a rule as EC2 does, or says why it cannot be.
func CheckRule(r kurabe.SecurityRule) (kurabe.SecurityRule, error) {
	malformed := func(format string, args ...any) error { return kurabe.Errorf(CodeRuleMalformed, format, args...) }
	r.Protocol = strings.ToLower(r.Protocol)
	if name, ok := protocols[r.Protocol]; ok {
		r.Protocol = name
	}
	var err error
	if r.Network, err = kurabe.CheckNetwork(r.Network, strings.Contains(r.Network, ":")); err != nil {
		return r, err
	}
	if !ruleText.MatchString(r.Description) {
		return r, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid rule description. Valid descriptions are strings less than 256 characters from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*")
	}
	switch r.Protocol {
	case kurabe.AnyProtocol:
		r.FromPort, r.ToPort = -1, -1
	case "tcp", "udp":
		if r.FromPort == -1 && r.ToPort == -1 {
			r.FromPort, r.ToPort = 0, 65535
		}
		if r.FromPort < 0 || r.ToPort > 65535 || r.FromPort > r.ToPort {
			return r, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid value '%d-%d' for portRange. Must specify both from and to ports with TCP/UDP.", r.FromPort, r.ToPort)
		}
	case "icmp", "icmpv6":
		if r.FromPort < -1 || r.FromPort > 255 || r.ToPort < -1 || r.ToPort > 255 {
			return r, malformed("ICMP code or type (%d, %d) out of range", r.FromPort, r.ToPort)
		}
	default:
		if n := r.Protocol; !protocolNumber.MatchString(n) || len(n) == 3 && n > "255" {
			return r, malformed("Unsupported IP protocol %q - supported: [tcp, udp, icmp, icmpv6, -1, or a number]", r.Protocol)
		}
		r.FromPort, r.ToPort = -1, -1
	}
	return r, nil
}

// same says whether two rules permit the same.
func same(a, b kurabe.SecurityRule) bool {
	return a.Egress == b.Egress && a.Protocol == b.Protocol && a.FromPort == b.FromPort && a.ToPort == b.ToPort && a.Network == b.Network
}

func words(r kurabe.SecurityRule) string {
	protocol := strings.ToUpper(r.Protocol)
	if r.Protocol == kurabe.AnyProtocol {
		return fmt.Sprintf("peer: %s, ALL, ALLOW", r.Network)
	}
	return fmt.Sprintf("peer: %s, %s, from port: %d, to port: %d, ALLOW", r.Network, protocol, r.FromPort, r.ToPort)
}

func checkCount(g *kurabe.SecurityGroup) error {
	var in, out int
	for _, r := range g.Rules {
		if r.Egress {
			out++
		} else {
			in++
		}
	}
	if max(in, out) > rulesMax {
		return kurabe.Errorf(CodeRuleQuota, "The maximum number of rules per security group, %d in each direction, has been reached.", rulesMax)
	}
	return nil
}

// AddRules adds checked rules to a group, all or none, and returns them with their ids.
func (c Set) AddRules(ctx context.Context, group string, rules []kurabe.SecurityRule) ([]kurabe.SecurityRule, error) {
	for n := range rules {
		rules[n].ID = newID("sgr-")
		if err := kurabe.CheckTags(rules[n].Tags); err != nil {
			return nil, err
		}
	}
	return rules, c.change(ctx, group, func(g *kurabe.SecurityGroup) error {
		for _, r := range rules {
			if slices.ContainsFunc(g.Rules, func(o kurabe.SecurityRule) bool { return same(o, r) }) {
				return kurabe.Errorf(CodeRuleExists, "the specified rule %q already exists", words(r))
			}
			g.Rules = append(g.Rules, r)
		}
		return checkCount(g)
	})
}

// RemoveRules takes rules away from a group, all or none: those of the ids, and those that permit
// what others of one direction do.
func (c Set) RemoveRules(ctx context.Context, group string, egress bool, ids []string, like []kurabe.SecurityRule) (gone []kurabe.SecurityRule, err error) {
	return gone, c.change(ctx, group, func(g *kurabe.SecurityGroup) error {
		gone = nil
		remove := func(is func(kurabe.SecurityRule) bool, absent error) error {
			n := slices.IndexFunc(g.Rules, is)
			if n < 0 {
				return absent
			}
			gone = append(gone, g.Rules[n])
			g.Rules = slices.Delete(g.Rules, n, n+1)
			return nil
		}
		for _, id := range ids {
			if err := remove(func(r kurabe.SecurityRule) bool { return r.ID == id && r.Egress == egress }, ruleUnknown(id)); err != nil {
				return err
			}
		}
		for _, l := range like {
			absent := kurabe.Errorf(CodeRuleNotFound, "The specified rule does not exist in this security group.")
			if err := remove(func(r kurabe.SecurityRule) bool { return same(r, l) }, absent); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReplaceRules gives rules of a group, by their ids, other content, all or none. A rule keeps
// its direction and its tags.
func (c Set) ReplaceRules(ctx context.Context, group string, by map[string]kurabe.SecurityRule) error {
	return c.change(ctx, group, func(g *kurabe.SecurityGroup) error {
		for id, r := range by {
			n := slices.IndexFunc(g.Rules, func(o kurabe.SecurityRule) bool { return o.ID == id })
			if n < 0 {
				return ruleUnknown(id)
			}
			r.ID, r.Egress, r.Tags = id, g.Rules[n].Egress, g.Rules[n].Tags
			g.Rules[n] = r
		}
		for n, r := range g.Rules {
			if slices.ContainsFunc(g.Rules[:n], func(o kurabe.SecurityRule) bool { return same(o, r) }) {
				return kurabe.Errorf(CodeRuleExists, "the specified rule %q already exists", words(r))
			}
		}
		return nil
	})
}

// DescribeRules gives rules of a group other descriptions, all or none: by id, or those that
// permit what others do.
func (c Set) DescribeRules(ctx context.Context, group string, egress bool, byID map[string]string, like []kurabe.SecurityRule) error {
	return c.change(ctx, group, func(g *kurabe.SecurityGroup) error {
		for id, text := range byID {
			n := slices.IndexFunc(g.Rules, func(r kurabe.SecurityRule) bool { return r.ID == id && r.Egress == egress })
			if n < 0 {
				return ruleUnknown(id)
			}
			if !ruleText.MatchString(text) {
				return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid rule description %.100q", text)
			}
			g.Rules[n].Description = text
		}
		for _, l := range like {
			n := slices.IndexFunc(g.Rules, func(r kurabe.SecurityRule) bool { return same(r, l) })
			if n < 0 {
				return kurabe.Errorf(CodeRuleNotFound, "The specified rule does not exist in this security group.")
			}
			g.Rules[n].Description = l.Description
		}
		return nil
	})
}
