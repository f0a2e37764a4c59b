package kurabe

import (
	"math"
	"strings"
	"testing"
)

func TestExcess(t *testing.T) {
	d := Demands{
		"log_size":    {Resource: Disk, Bytes: 1, Default: 1 << 20},
		"pool":        {Resource: Memory, Bytes: 8192, Default: 16384},
		"connections": {Resource: Memory, Bytes: 1 << 10, Default: 100},
		"stack":       {Resource: Memory, Bytes: 1, Default: 1 << 18, Times: []string{"connections"}, Plus: 10},
		"sort":        {Resource: Memory, Bytes: 1, Alone: true},
		"rows":        {Resource: Memory, Bytes: GiB, If: "schema"},
	}
	has := Sizes{MemoryBytes: GiB, StorageBytes: 20 * GiB}
	for _, c := range []struct {
		name   string
		values map[string]string
		has    Sizes
		want   string
	}{
		{"the engine's own", nil, has, ""},
		{"as much as there is", map[string]string{"log_size": "10737418240"}, has, ""},
		{"a byte more", map[string]string{"log_size": "10737418241"}, has, "log_size"},
		{"beyond int64", map[string]string{"log_size": "18446744073709551615"}, has, "log_size"},
		{"no size is known", map[string]string{"log_size": "18446744073709551615"}, Sizes{}, ""},
		{"together", map[string]string{"pool": "80000", "connections": "2000"}, has, "pool"},
		{"by its factor", map[string]string{"connections": "5000"}, has, "connections"},
		{"a session alone", map[string]string{"sort": "1073741824", "pool": "80000"}, has, ""},
		{"a session too much", map[string]string{"sort": "1073741825"}, has, "sort"},
		{"switched off", map[string]string{"rows": "2"}, has, ""},
		{"switched on", map[string]string{"rows": "2", "schema": "1"}, has, "rows"},
		{"by the server's choice", map[string]string{"pool": "-1"}, has, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := d.Excess(c.values, func(name string) bool { _, set := c.values[name]; return set }, c.has)
			switch {
			case c.want == "" && e != nil:
				t.Errorf("refused: %v", e)
			case c.want != "" && (e == nil || e.Parameter != c.want):
				t.Errorf("%+v", e)
			case e != nil && (!strings.Contains(e.Error(), c.want) || !strings.Contains(e.Error(), FormatBytes(e.Bound)) || e.Value == ""):
				t.Errorf("it says: %v", e)
			}
		})
	}
	if e := d.Excess(map[string]string{"pool": "800000"}, func(string) bool { return false }, has); e != nil {
		t.Errorf("blames what nobody chose: %v", e)
	}
	if got := times(math.MaxInt64, 2); got != math.MaxInt64 {
		t.Error(got)
	}
}
