package ec2

import (
	"context"
	"net/http"
	"slices"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
)

// API returns the service.
func API(c *control.Control) api.Service {
	s := service{c}
	return api.Service{
		Name: shape.EC2.Service, Protocols: []api.Protocol{api.EC2{Query: api.Query{Model: shape.EC2}}},
		Errors: errorCodes,
		Ops: api.Table(slices.Concat(s.groupRows(), s.ruleRows(), s.tagRows(), []api.Operation{
			api.Read("DescribeAvailabilityZones", s.zones),
			api.Read("DescribeNetworkInterfaces", s.interfaces),
			api.Read("DescribeRegions", s.regions),
			api.Read("DescribeSubnets", s.subnets),
			api.Read("DescribeVpcs", s.vpcs),
		})...),
		NotOffered: func(string) string {
			return "only the network of the databases exists, and of it only security groups can be changed"
		},
	}
}

type service struct{ c *control.Control }

// set is a list in an answer, which is written when it is empty, too.
type set[T any] struct {
	Items []T `xml:"item"`
}

type zonesInput struct {
	ZoneName             []string
	AllAvailabilityZones bool
	Filter               []filter
	DryRun               bool
}

type zonesOutput struct {
	Zones set[zone] `xml:"availabilityZoneInfo"`
}

type zone struct {
	ZoneName           string `xml:"zoneName"`
	ZoneState          string `xml:"zoneState"`
	ZoneType           string `xml:"zoneType"`
	RegionName         string `xml:"regionName"`
	OptInStatus        string `xml:"optInStatus"`
	GroupName          string `xml:"groupName"`
	NetworkBorderGroup string `xml:"networkBorderGroup"`
}

var zoneFields = fields[zone]{
	"zone-name": func(z zone) string { return z.ZoneName }, "state": func(z zone) string { return z.ZoneState },
	"region-name": func(z zone) string { return z.RegionName }, "zone-type": func(z zone) string { return z.ZoneType },
	"opt-in-status": func(z zone) string { return z.OptInStatus }, "group-name": func(z zone) string { return z.GroupName },
}

func (s service) zones(_ context.Context, in *zonesInput) (*zonesOutput, error) {
	var all []zone
	region := s.c.Region
	for _, name := range s.c.Zones {
		all = append(all, zone{name, "available", "availability-zone", region, "opt-in-not-required", region, region})
	}
	absent := func(name string) error { return invalid("Invalid availability zone: [%.100s]", name) }
	got, _, err := find(all, request{ids: in.ZoneName, filters: in.Filter, dryRun: in.DryRun}, "zone-name", zoneFields, absent)
	return &zonesOutput{set[zone]{got}}, err
}

type regionsInput struct {
	RegionName []string
	AllRegions bool
	Filter     []filter
	DryRun     bool
}

type regionsOutput struct {
	Regions set[region] `xml:"regionInfo"`
}

type region struct {
	RegionName  string `xml:"regionName"`
	OptInStatus string `xml:"optInStatus"`
}

var regionFields = fields[region]{
	"region-name":   func(r region) string { return r.RegionName },
	"opt-in-status": func(r region) string { return r.OptInStatus },
}

func (s service) regions(_ context.Context, in *regionsInput) (*regionsOutput, error) {
	all := []region{{s.c.Region, "opt-in-not-required"}}
	absent := func(name string) error { return invalid("Invalid region name: [%.100s]", name) }
	got, _, err := find(all, request{ids: in.RegionName, filters: in.Filter, dryRun: in.DryRun}, "region-name", regionFields, absent)
	return &regionsOutput{set[region]{got}}, err
}

type vpcsInput struct {
	VpcId      []string
	Filter     []filter
	DryRun     bool
	MaxResults *int32
	NextToken  string
}

type vpcsOutput struct {
	Vpcs set[vpc] `xml:"vpcSet"`
	page
}

type vpc struct {
	VpcID           string `xml:"vpcId"`
	OwnerID         string `xml:"ownerId"`
	State           string `xml:"state"`
	InstanceTenancy string `xml:"instanceTenancy"`
	IsDefault       bool   `xml:"isDefault"`
}

var vpcFields = fields[vpc]{
	"vpc-id": func(v vpc) string { return v.VpcID }, "owner-id": func(v vpc) string { return v.OwnerID },
	"state": func(v vpc) string { return v.State }, "is-default": func(v vpc) string { return yes(v.IsDefault) },
	"isDefault": func(v vpc) string { return yes(v.IsDefault) },
}

func (s service) vpcs(_ context.Context, in *vpcsInput) (*vpcsOutput, error) {
	all := []vpc{{s.c.NetworkID(), s.c.Account, "available", "default", true}}
	got, next, err := find(all, request{in.VpcId, in.Filter, in.DryRun, in.MaxResults, in.NextToken}, "vpc-id", vpcFields, notFound("InvalidVpcID", "vpc ID"))
	return &vpcsOutput{set[vpc]{got}, next}, err
}

type interfacesInput struct {
	NetworkInterfaceId []string
	Filter             []filter
	DryRun             bool
	MaxResults         *int32
	NextToken          string
}

type interfacesOutput struct {
	Interfaces set[struct{}] `xml:"networkInterfaceSet"`
}

// interfaces shows that there are none: databases have addresses of their hosts. Tools look here
// for what still has a security group that they are about to delete.
func (s service) interfaces(_ context.Context, in *interfacesInput) (*interfacesOutput, error) {
	if in.DryRun {
		return nil, errDryRun
	}
	if len(in.NetworkInterfaceId) > 0 {
		return nil, notFound("InvalidNetworkInterfaceID", "networkInterface ID")(in.NetworkInterfaceId[0])
	}
	return &interfacesOutput{}, nil
}

type subnetsInput struct {
	SubnetId   []string
	Filter     []filter
	DryRun     bool
	MaxResults *int32
	NextToken  string
}

type subnetsOutput struct {
	Subnets set[subnet] `xml:"subnetSet"`
	page
}

type subnet struct {
	SubnetID     string `xml:"subnetId"`
	SubnetArn    string `xml:"subnetArn"`
	VpcID        string `xml:"vpcId"`
	OwnerID      string `xml:"ownerId"`
	State        string `xml:"state"`
	Zone         string `xml:"availabilityZone"`
	DefaultForAz bool   `xml:"defaultForAz"`
	PublicIP     bool   `xml:"mapPublicIpOnLaunch"`
}

var subnetFields = fields[subnet]{
	"subnet-id": func(n subnet) string { return n.SubnetID }, "subnet-arn": func(n subnet) string { return n.SubnetArn },
	"vpc-id": func(n subnet) string { return n.VpcID }, "owner-id": func(n subnet) string { return n.OwnerID },
	"state": func(n subnet) string { return n.State }, "availability-zone": func(n subnet) string { return n.Zone },
	"availabilityZone": func(n subnet) string { return n.Zone }, "default-for-az": func(n subnet) string { return yes(n.DefaultForAz) },
	"defaultForAz":            func(n subnet) string { return yes(n.DefaultForAz) },
	"map-public-ip-on-launch": func(n subnet) string { return yes(n.PublicIP) },
}

func (s service) subnets(_ context.Context, in *subnetsInput) (*subnetsOutput, error) {
	var all []subnet
	byDefault := s.c.DefaultSubnets()
	for _, n := range s.c.Subnets() {
		all = append(all, s.subnet(n, slices.Contains(byDefault, n)))
	}
	got, next, err := find(all, request{in.SubnetId, in.Filter, in.DryRun, in.MaxResults, in.NextToken}, "subnet-id", subnetFields, notFound("InvalidSubnetID", "subnet ID"))
	return &subnetsOutput{set[subnet]{got}, next}, err
}

func (s service) subnet(n kurabe.Subnet, byDefault bool) subnet {
	return subnet{
		SubnetID: n.ID, SubnetArn: "arn:aws:ec2:" + s.c.Region + ":" + s.c.Account + ":subnet/" + n.ID,
		VpcID: s.c.NetworkID(), OwnerID: s.c.Account, State: "available", Zone: n.Zone, DefaultForAz: byDefault,
	}
}

func invalid(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "InvalidParameterValue", format, args...)
}

// notFound tells that a resource is not there, in EC2's words.
func notFound(code, what string) func(id string) error {
	return func(id string) error {
		return fault.New(http.StatusBadRequest, code+".NotFound", "The %s '%.100s' does not exist", what, id)
	}
}
