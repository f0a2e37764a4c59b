// Package ec2 shows the network that databases are in, as the tools know it that look for
// subnets, security groups and zones before they make an instance.
//
// There is one flat network: a VPC, a subnet for each zone, a security group. They are read
// only; internal/control gives them their ids, and the API of RDS names the same ones.
package ec2
