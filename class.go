package kurabe

import (
	_ "embed" // of classTable
	"fmt"
	"sort"
	"strings"
)

// GiB is 2^30 bytes.
const GiB = int64(1) << 30

// LocalClassPrefix starts the names of Kurabe's own classes: a memory size for
// the formulas and the reservation, and no enforced limit, for hosts that have
// no lever to enforce one. CPUs is 0: the whole host.
const LocalClassPrefix = "db.local."

// Class is an instance class: AWS's names with AWS's sizes.
type Class struct {
	Name        string
	CPUs        int
	MemoryBytes int64
	// Enforced says that the class promises limits, which takes the host's
	// cpu and memory levers.
	Enforced bool
}

// classTable is the one table of AWS's classes, with its source.
//
//go:embed classes.tsv
var classTable string

// localSizes are those of the classes of our own: memory in MiB.
var localSizes = map[string]int64{"micro": 1024, "small": 2048, "medium": 4096, "large": 8192, "xlarge": 16384, "2xlarge": 32768}

var classes = func() map[string]Class {
	m := readClasses(classTable)
	for size, memoryMB := range localSizes {
		name := LocalClassPrefix + size
		m[name] = Class{Name: name, MemoryBytes: memoryMB << 20}
	}
	return m
}()

// readClasses reads the table. A line that is none is our mistake.
func readClasses(table string) map[string]Class {
	m := map[string]Class{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var c Class
		var memoryMB int64
		if n, err := fmt.Sscanf(line, "%s\t%d\t%d", &c.Name, &c.CPUs, &memoryMB); n != 3 || err != nil {
			panic("classes.tsv: " + line)
		}
		if _, twice := m[c.Name]; twice {
			panic("classes.tsv has twice " + c.Name)
		}
		c.MemoryBytes, c.Enforced = memoryMB<<20, true
		m[c.Name] = c
	}
	return m
}

// FindClass returns the class with that name.
func FindClass(name string) (Class, bool) {
	c, ok := classes[name]
	return c, ok
}

// Classes lists every class by name.
func Classes() []Class {
	list := make([]Class, 0, len(classes))
	for _, c := range classes {
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Unfit says why a host cannot hold a class at all, "" when it can. Whether
// memory is free at the moment is another question.
func (c Class) Unfit(h HostReport) string {
	switch {
	case c.MemoryBytes > h.MemoryBytes:
		return "it needs " + FormatBytes(c.MemoryBytes) + " of memory and the host has " + FormatBytes(h.MemoryBytes)
	case c.CPUs > h.CPUs:
		return "it needs " + itoa(c.CPUs) + " vCPUs and the host has " + itoa(h.CPUs)
	}
	if !c.Enforced {
		return ""
	}
	var missing []string
	for _, lever := range []string{"cpu", "memory"} {
		if !h.Has(lever) {
			missing = append(missing, lever+": "+h.Detail(lever))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	size := c.Name[strings.LastIndexByte(c.Name, '.')+1:]
	return "its limits cannot be enforced here (" + strings.Join(missing, "; ") +
		"); " + LocalClassPrefix + size + " and its siblings promise no limit"
}
