package kurabe_test

import (
	"reflect"
	"testing"

	"kurabe"
)

func TestFilterOf(t *testing.T) {
	in := func(protocol string, from, to int, network string) kurabe.SecurityRule {
		return kurabe.SecurityRule{Protocol: protocol, FromPort: from, ToPort: to, Network: network}
	}
	out := in(kurabe.AnyProtocol, -1, -1, kurabe.AllIPv4)
	out.Egress = true
	one := kurabe.SecurityGroup{Rules: []kurabe.SecurityRule{
		in("tcp", 5000, 5432, "10.0.0.0/8"), in("tcp", 5433, 6000, "10.1.0.0/16"), in("udp", 0, 65535, "10.2.0.0/16"),
		in(kurabe.AnyProtocol, -1, -1, "fd00::/8"), out,
	}}
	everything := []kurabe.Destination{{Network: kurabe.AllIPv4, Protocol: kurabe.AnyProtocol, ToPort: 65535}}
	for name, c := range map[string]struct {
		groups []kurabe.SecurityGroup
		want   *kurabe.PacketFilter
	}{
		"the default group":         {[]kurabe.SecurityGroup{kurabe.OpenSecurityGroup()}, nil},
		"beside the default group":  {[]kurabe.SecurityGroup{one, kurabe.OpenSecurityGroup()}, nil},
		"rules of the port":         {[]kurabe.SecurityGroup{one, one}, &kurabe.PacketFilter{Sources: []string{"10.0.0.0/8", "fd00::/8"}, Destinations: everything}},
		"a group without any rules": {[]kurabe.SecurityGroup{{}}, &kurabe.PacketFilter{}},
	} {
		if got := kurabe.FilterOf(c.groups, 5432); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestCheckNetwork(t *testing.T) {
	for text, ok := range map[string]bool{"10.0.0.0/8": true, "10.0.0.1/8": false, "10.0.0.1": false, "fd00::/8": false, "::ffff:10.0.0.0/104": false, "": false} {
		if got, err := kurabe.CheckNetwork(text, false); (err == nil) != ok || ok && got != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
