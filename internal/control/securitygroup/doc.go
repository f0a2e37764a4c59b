// Package securitygroup holds the use cases of VPC security groups: their rules, and which
// instances, clusters and proxies have them.
//
// A rule names one network. What is refused here is what the hosts could not enforce: groups as
// sources of others, prefix lists, and any group at all where a host cannot filter packets.
// Ids of groups in requests and answers are EC2's; records call the default group by
// kurabe.DefaultSecurityGroup.
package securitygroup
