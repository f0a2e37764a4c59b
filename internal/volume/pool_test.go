package volume

import "testing"

func TestHoldBytes(t *testing.T) {
	const g = 1 << 30
	const m = 1 << 20
	// A disk of 100 GiB keeps a margin of 2 GiB.
	cases := []struct {
		name string
		s    PoolSpace
		want int64
	}{
		{"the disk has room for all", PoolSpace{SizeBytes: 80 * g, HostSizeBytes: 100 * g, HostFreeBytes: 90 * g, FreeBytes: 80 * g}, 0},
		{"preallocated", PoolSpace{SizeBytes: 80 * g, ImageBytes: 80 * g, HostSizeBytes: 100 * g, FreeBytes: 70 * g, UsedBytes: 10 * g}, 0},
		{"others took half", PoolSpace{SizeBytes: 80 * g, HostSizeBytes: 100 * g, HostFreeBytes: 42 * g, FreeBytes: 80 * g}, 40 * g},
		{"and held already", PoolSpace{SizeBytes: 80 * g, HostSizeBytes: 100 * g, HostFreeBytes: 42 * g, FreeBytes: 40 * g, HeldBytes: 40 * g}, 40 * g},
		{"what is promised and not written comes first", PoolSpace{SizeBytes: 80 * g, ImageBytes: 10 * g, HostSizeBytes: 100 * g, HostFreeBytes: 12 * g, FreeBytes: 65 * g, UsedBytes: 15 * g}, 60 * g},
		{"less than the margin is nothing", PoolSpace{SizeBytes: 80 * g, ImageBytes: 10 * g, HostSizeBytes: 100 * g, HostFreeBytes: g, FreeBytes: 70 * g, UsedBytes: 10 * g}, 70 * g},
		{"room again", PoolSpace{SizeBytes: 80 * g, ImageBytes: 10 * g, HostSizeBytes: 100 * g, HostFreeBytes: 80 * g, FreeBytes: m, UsedBytes: 10 * g, HeldBytes: 70 * g}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.holdBytes(); got != c.want {
				t.Errorf("holds %d, want %d", got, c.want)
			}
		})
	}
}

func TestMountIn(t *testing.T) {
	const table = "24 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
		"30 24 0:5 / /srv/a\\040b/pool rw - tmpfs none rw\n" +
		"31 24 7:3 / /srv/a\\040b/pool rw shared:1 - xfs /dev/loop3 rw\n"
	if device, found := mountIn(table, "/srv/a b/pool"); device != "7:3" || !found {
		t.Errorf("the last of two mounts is %q, %v", device, found)
	}
	if device, found := mountIn(table, "/srv/a b"); found {
		t.Errorf("the parent is mounted: %q", device)
	}
	if _, err := openLoopNumber("254:3"); err == nil {
		t.Error("a disk was taken for a loop device")
	}
}

func TestNewPoolSize(t *testing.T) {
	dir := t.TempDir()
	free, err := FreeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1, poolBytesMin - poolUnit, free * 2} {
		if got, err := newPoolSize(dir, size); err == nil {
			t.Errorf("a pool of %d bytes was taken as %d", size, got)
		}
	}
	if free < 2*poolBytesMin {
		t.Skip("the disk has no room for a pool")
	}
	if got, err := newPoolSize(dir, poolBytesMin+1); err != nil || got != poolBytesMin {
		t.Errorf("a size is rounded to %d, %v", got, err)
	}
	if got, err := newPoolSize(dir, 0); err != nil || got > free*8/10 || got < free/2 {
		t.Errorf("the default is %d of %d free, %v", got, free, err)
	}
}
