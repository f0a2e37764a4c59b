package kurabe

import (
	"strings"
	"testing"
)

func TestEndpointDomain(t *testing.T) {
	d := EndpointDomain{ID: "c0123456789a", Region: "us-east-1", Suffix: "db.example"}
	for name, c := range map[string]struct {
		asked string
		want  EndpointOf
		found bool
		in    bool
	}{
		"an instance":             {d.Instance("shop"), EndpointOf{Name: "shop"}, true, true},
		"with a dot, in capitals": {strings.ToUpper(d.Instance("shop")) + ".", EndpointOf{Name: "shop"}, true, true},
		"a cluster":               {d.Cluster("shop"), EndpointOf{Name: "shop", Cluster: true}, true, true},
		"its reader":              {d.ClusterReader("shop"), EndpointOf{Name: "shop", Cluster: true, Reader: true}, true, true},
		"the domain itself":       {d.String(), EndpointOf{}, false, true},
		"below an instance":       {"a." + d.Instance("shop"), EndpointOf{}, false, true},
		"no name":                 {"." + d.String(), EndpointOf{}, false, true},
		"a proxy":                 {d.ProxyEndpoint("front", ProxyDefaultEndpoint), EndpointOf{Name: "front", Proxy: true}, true, true},
		"its endpoint":            {d.ProxyEndpoint("front", "reads"), EndpointOf{Name: "reads", Proxy: true, ProxyEndpoint: true}, true, true},
		"below a proxy":           {"a." + d.ProxyEndpoint("front", ProxyDefaultEndpoint), EndpointOf{}, false, true},
		"another label":           {"shop.cluster-custom-" + d.String(), EndpointOf{}, false, false},
		"glued to the id":         {"shop" + d.String(), EndpointOf{}, false, false},
		"another id":              {"shop.cxxxxxxxxxxx.us-east-1.rds.db.example", EndpointOf{}, false, false},
		"another domain":          {"shop.example", EndpointOf{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			of, found := d.Find(c.asked)
			if of != c.want || found != c.found || d.Within(c.asked) != c.in {
				t.Errorf("%s is %+v, %v, within: %v; want %+v, %v, %v", c.asked, of, found, d.Within(c.asked), c.want, c.found, c.in)
			}
		})
	}
	if (EndpointDomain{}).Within("") || (EndpointDomain{}).Within(".") {
		t.Error("a service without a suffix answers for names")
	}
}

func TestEndpointSuffix(t *testing.T) {
	for _, good := range []string{"db.example", "localhost", "a-b.c1", "kurabe.internal"} {
		if err := CheckEndpointSuffix(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "a..b", "-a", "a_b", "A.b", "a b", "x\n", strings.Repeat("a", 64), strings.Repeat("a.", 60) + "a"} {
		if CheckEndpointSuffix(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
	a, b := NewEndpointDomain("us-east-1", "x"), NewEndpointDomain("us-east-1", "x")
	if a.ID == b.ID || len(a.ID) != 12 || !dnsLabel.MatchString(a.ID) {
		t.Errorf("ids %q and %q", a.ID, b.ID)
	}
}
