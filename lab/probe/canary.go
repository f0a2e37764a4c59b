package probe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"time"
)

// The canary's work: fixed, and some 50 ms each for processor and disk.
const (
	cpuPieces     = 10
	cpuPieceBytes = 2 << 20 // hashed in about 5 ms at 400 MB/s
	syncsMax      = 20
	syncsTime     = 50 * time.Millisecond
	syncBytes     = 4 << 10
)

// Bounds of Disturbed.
const (
	// stealMax is the share of all processors' time that the hypervisor may take.
	stealMax = 0.02
	// canaryMax is how far the time of the processor's piece may move during a trial, as a
	// share of the shorter. It is the best of its pieces, which a busy machine reaches too.
	canaryMax = 0.05
	// stallMax is the share of the canary's own time during which some process waited for
	// a processor. Before a trial only the canary works, and it needs one.
	stallMax = 0.25
)

// Canary is how fast the machine was at one moment.
type Canary struct {
	At time.Time
	// Ms is the time of a fixed piece of work, by kind, milliseconds: cpu, the best of a
	// few pieces; fsync, the middle one of a few.
	Ms map[string]float64
	// Stall is the share of the canary's time during which some process was ready and had
	// no processor; negative where the kernel does not tell.
	Stall float64

	total, steal float64 // of all processors, seconds since the machine started
}

// Sing does the canary's work, about 100 ms of it, in that folder.
func Sing(ctx context.Context, folder string) (Canary, error) {
	c := Canary{At: time.Now(), Ms: map[string]float64{}, Stall: -1}
	stalled, stallErr := readStall(procRoot)
	c.Ms["cpu"] = singCPU(ctx)
	if after, err := readStall(procRoot); err == nil && stallErr == nil {
		c.Stall = (after - stalled) / time.Since(c.At).Seconds()
	}
	var err error
	if c.Ms["fsync"], err = singSync(ctx, folder); err != nil {
		return Canary{}, fmt.Errorf("canary: %w", err)
	}
	m, err := readMachine(procRoot)
	if err != nil {
		return Canary{}, fmt.Errorf("canary: %w", err)
	}
	c.total, c.steal = m.total, m.steal
	return c, context.Cause(ctx)
}

// singCPU hashes the same bytes a few times and gives the best time, milliseconds: what
// the processor can do when it is left alone for five milliseconds.
func singCPU(ctx context.Context) float64 {
	data := make([]byte, cpuPieceBytes)
	best := time.Duration(-1)
	for range cpuPieces {
		if ctx.Err() != nil {
			break
		}
		begin := time.Now()
		sum := sha256.Sum256(data)
		took := time.Since(begin)
		data[0] = sum[0] // so that no compiler leaves it out
		if best < 0 || took < best {
			best = took
		}
	}
	return float64(max(0, best).Microseconds()) / 1000
}

// singSync appends a page and syncs it, a few times.
func singSync(ctx context.Context, folder string) (float64, error) {
	f, err := os.CreateTemp(folder, "kurabe-lab-canary-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, syncBytes)
	var times []float64
	for begin := time.Now(); len(times) < syncsMax && (len(times) == 0 || time.Since(begin) < syncsTime) && ctx.Err() == nil; {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(start).Microseconds())/1000)
	}
	if len(times) == 0 {
		return 0, context.Cause(ctx)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// Disturbed says whether the machine was another one during a trial than it was before,
// and why. It knows nothing of the variant. Therefore neither the disk after the trial nor
// the waiting for processors during it counts: a variant that writes more or computes
// more causes both, and its trials would be the ones to be left out.
func Disturbed(before, after Canary) (bool, string) {
	if total := after.total - before.total; total > 0 {
		if share := (after.steal - before.steal) / total; share > stealMax {
			return true, fmt.Sprintf("the hypervisor took %.1f %% of the processors' time, more than %.0f %%", 100*share, 100*stealMax)
		}
	}
	a, b := before.Ms["cpu"], after.Ms["cpu"]
	if low := min(a, b); low > 0 && (max(a, b)-low)/low > canaryMax {
		return true, fmt.Sprintf("a fixed piece of work took %.2f ms before and %.2f ms after, a difference of more than %.0f %%", a, b, 100*canaryMax)
	}
	if before.Stall > stallMax {
		return true, fmt.Sprintf("other programs kept the processors busy before the trial: something waited for one during %.0f %% of the canary's time", 100*before.Stall)
	}
	return false, ""
}
