package kurabe

import (
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

// size is one member of a family: vCPUs and memory in MiB.
type size struct {
	name     string
	cpus     int
	memoryMB int64
}

// general, burst and memory-optimised families of RDS, by memory for each vCPU.
// Source: the RDS user guide, "Hardware specifications for DB instance classes".
var families = map[string][]size{
	"t2":  {{"micro", 1, 1024}, {"small", 1, 2048}, {"medium", 2, 4096}, {"large", 2, 8192}, {"xlarge", 4, 16384}, {"2xlarge", 8, 32768}},
	"t3":  burst,
	"t4g": burst,
	"m1":  {{"small", 1, 1740}, {"medium", 1, 3840}, {"large", 2, 7680}},
	"m3":  {{"medium", 1, 3840}, {"large", 2, 7680}, {"xlarge", 4, 15360}, {"2xlarge", 8, 30720}},
	"m4":  doubling(2, 8192, "large", "xlarge", "2xlarge", "4xlarge"),
	"m5":  general, "m6g": general, "m6i": general, "m7g": general, "m7i": general, "m8g": general,
	"r4": memoryOptimised, "r5": memoryOptimised, "r6g": memoryOptimised, "r6i": memoryOptimised,
	"r7g": memoryOptimised, "r7i": memoryOptimised, "r8g": memoryOptimised,
	"local": {{"micro", 0, 1024}, {"small", 0, 2048}, {"medium", 0, 4096}, {"large", 0, 8192}, {"xlarge", 0, 16384}, {"2xlarge", 0, 32768}},
}

var (
	burst           = []size{{"micro", 2, 1024}, {"small", 2, 2048}, {"medium", 2, 4096}, {"large", 2, 8192}, {"xlarge", 4, 16384}, {"2xlarge", 8, 32768}}
	general         = doubling(2, 8192, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")
	memoryOptimised = doubling(2, 16384, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")
)

// doubling makes sizes that each double the one before.
func doubling(cpus int, memoryMB int64, names ...string) []size {
	sizes := make([]size, len(names))
	for i, n := range names {
		sizes[i] = size{n, cpus << i, memoryMB << i}
	}
	return sizes
}

var classes = func() map[string]Class {
	m := map[string]Class{}
	for family, sizes := range families {
		for _, s := range sizes {
			name := "db." + family + "." + s.name
			m[name] = Class{name, s.cpus, s.memoryMB << 20, family != "local"}
		}
	}
	return m
}()

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
