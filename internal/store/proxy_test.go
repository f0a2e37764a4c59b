package store

import (
	"errors"
	"testing"

	"kurabe"
)

// The names of a proxy and of its endpoints are unique and given back, and an instance has the
// proxies that lead to it.
func TestProxies(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	p := kurabe.Proxy{ID: "prx-1", Name: "a", Target: "db-1"}
	end := kurabe.ProxyEndpointKey("r")
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateProxy(p).TakeProxyName(end, p.ID)))
	for _, name := range []string{"a", end} {
		if found, ok := v.ProxyOfName(name); !ok || found.ID != p.ID {
			t.Errorf("%s: %+v", name, found)
		}
		if _, err := NewChange().TakeProxyName(name, "prx-2").Commit(t.Context(), kv); !errors.Is(err, ErrConflict) {
			t.Errorf("%s was taken twice: %v", name, err)
		}
	}
	if of := v.ProxiesOf("db-1"); len(of) != 1 || len(v.ProxiesOf("db-2")) != 0 {
		t.Errorf("proxies of db-1: %v", of)
	}
	found, _ := v.Proxy("prx-1")
	p.Target = ""
	mustSee(t, v, mustCommit(t, kv, NewChange().PutProxy(p, found.SpecMod)))
	if of := v.ProxiesOf("db-1"); len(of) != 0 {
		t.Errorf("proxies of db-1 without a target: %v", of)
	}
	found, _ = v.Proxy("prx-1")
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteProxy(found)))
	if _, ok := v.ProxyOfName(end); ok || len(v.Proxies()) != 0 {
		t.Error("a deleted proxy is there")
	}
}
