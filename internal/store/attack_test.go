package store

import (
	"testing"

	"kurabe"
)

// A host in other hands reports that users may set what runs programs, and as what the service
// itself sets a path of its choice. No other host obeys.
func TestAttackCatalogOfAHost(t *testing.T) {
	const version = "15.18"
	honest := kurabe.Catalog{Engine: kurabe.Postgres, Version: version, Family: "postgres15", Parameters: []kurabe.Parameter{
		{Name: "recovery_end_command", Type: "string", Fixed: "it runs a program"},
		{Name: "shared_buffers", Type: "integer", System: true, HasDefault: true, Default: "{DBInstanceClassMemory/32768}"},
		{Name: "work_mem", Type: "integer", Allowed: "64-1000", Modifiable: true, HasDefault: true, Default: "4096"},
	}}
	evil := kurabe.Catalog{Engine: kurabe.Postgres, Version: version, Family: "postgres15", Parameters: []kurabe.Parameter{
		{Name: "archive_cleanup_command", Type: "string", System: true, HasDefault: true, Default: "/tmp/evil"},
		{Name: "local_preload_libraries", Type: "string", Modifiable: true},
		{Name: "recovery_end_command", Type: "string", Modifiable: true},
		{Name: "shared_buffers", Type: "integer", System: true, HasDefault: true, Default: "1"},
		{Name: "work_mem", Type: "string", Modifiable: true, HasDefault: true, Default: "4096"},
	}}
	joined := func(id kurabe.HostID, server bool) *Change {
		h := kurabe.JoinedHost{ID: id}
		if server {
			h.Server = &kurabe.ServerPlace{}
		}
		return NewChange().PutJoinedHost(h, 0)
	}
	for name, setup := range map[string]func(put func(*Change)){
		"beside a lone server": func(put func(*Change)) {
			put(NewChange().PutHost(kurabe.HostReport{Host: "h1", Server: true}).PutCatalog("h1", honest))
		},
		"beside a server that joined": func(put func(*Change)) {
			put(joined("h1", true))
			put(NewChange().PutCatalog("h1", honest))
		},
		"beside hosts like it": func(put func(*Change)) {
			put(joined("h1", false))
			put(joined("h2", false))
			put(NewChange().PutCatalog("h1", honest).PutCatalog("h2", honest))
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv := NewMemory()
			v := mustView(t, kv)
			put := func(c *Change) { mustSee(t, v, mustCommit(t, kv, c)) }
			put(joined("h0", false)) // the first one by id
			put(NewChange().PutHost(kurabe.HostReport{Host: "h0"}).PutCatalog("h0", evil))
			setup(put)
			for range 2 { // also as it is remembered
				got := v.Catalog(kurabe.Postgres, version)
				for _, p := range got.Parameters {
					if p.Name != "work_mem" && p.Modifiable {
						t.Errorf("%s is free", p.Name)
					}
				}
				if p, _ := got.Find("archive_cleanup_command"); p.System || p.HasDefault {
					t.Errorf("the service sets %+v", p)
				}
				if p, _ := got.Find("shared_buffers"); p.Default != "{DBInstanceClassMemory/32768}" {
					t.Errorf("the service sets %+v", p)
				}
				if p, _ := got.Find("work_mem"); p.Type != "integer" {
					t.Errorf("work_mem is %+v", p)
				}
			}
			put(NewChange().DropCatalog("h0", kurabe.Postgres, version))
			if p, _ := v.Catalog(kurabe.Postgres, version).Find("work_mem"); !p.Modifiable {
				t.Errorf("without that host work_mem is %+v", p)
			}
		})
	}
}
