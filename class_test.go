package kurabe

import "testing"

// Classes have RDS's sizes; one for each shape that a family can have.
func TestClassSizes(t *testing.T) {
	for name, want := range map[string]struct {
		cpus     int
		memoryMB int64
	}{
		"db.t4g.micro": {2, 1024}, "db.t2.small": {1, 2048}, "db.m5d.large": {2, 8192}, "db.m6gd.12xlarge": {48, 196608},
		"db.r5d.xlarge": {4, 32768}, "db.r6gd.large": {2, 16384}, "db.m6id.metal": {128, 524288}, "db.r6id.32xlarge": {128, 1048576},
		"db.c6gd.medium": {1, 2048}, "db.c6gd.2xlarge": {8, 16384}, "db.x2g.large": {2, 32768}, "db.x2iedn.xlarge": {4, 131072},
		"db.z1d.3xlarge": {12, 98304}, "db.r4.large": {2, 15616}, "db.m4.10xlarge": {40, 163840}, "db.r8g.48xlarge": {192, 1572864},
		"db.m7i.metal-24xl": {96, 393216}, "db.r5b.24xlarge": {96, 786432}, "db.local.micro": {0, 1024},
	} {
		c, ok := FindClass(name)
		if !ok || c.CPUs != want.cpus || c.MemoryBytes != want.memoryMB<<20 || c.Enforced == (want.cpus == 0) {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
	}
	if _, ok := FindClass("db.r5.large.tpc1.mem2x"); ok {
		t.Error("an Oracle class is offered")
	}
}
