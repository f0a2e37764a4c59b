package probe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"time"

	"kurabe/lab/owner"
)

// The canary's work: fixed, and at most some 50 ms each for processor and disk.
const (
	cpuPieces     = 10
	cpuPieceBytes = 2 << 20 // hashed in 1 ms by a processor that can do so by itself, else in 5
	syncsMax      = 20
	syncsTime     = 50 * time.Millisecond
	syncBytes     = 4 << 10
	// songPause is between two songs of SingUntil, so that the canary is not what it waits for.
	songPause = 100 * time.Millisecond
)

// Bounds of Disturbed; the lab's DESIGN says what they rest on.
const (
	// stealMax is the share of the processors' time that the hypervisor may keep of what was
	// asked for. Of all time it would be less for a variant that waits more.
	stealMax = 0.02
	// canaryMax is how far the time of the processor's piece may move during a trial, as a
	// share of the shorter. It is the best of its pieces, which a busy machine reaches too.
	canaryMax = 0.05
	// stallMax is the share of the canary's own time during which some process waited for
	// a processor. Before a trial only the canary works, and it needs one.
	stallMax = 0.25
)

// CanaryCPU is the kind of a canary's time that is the processor's.
const CanaryCPU = "cpu"

// Canary is how fast the machine was at one moment.
type Canary struct {
	At time.Time
	// Ms is the time of a fixed piece of work, by kind, milliseconds: cpu, the best of a
	// few pieces; fsync, the middle one of a few.
	Ms map[string]float64
	// Stall is the share of the canary's time during which some process was ready and had
	// no processor; negative where the kernel does not tell.
	Stall float64

	busy, steal float64 // of all processors, seconds since the machine started
}

// Calm says whether the machine was left to the canary.
func (c Canary) Calm() bool { return c.Stall <= stallMax }

// AsFast says whether the processor was as fast as at another moment.
func (c Canary) AsFast(other Canary) bool {
	a, b := c.Ms[CanaryCPU], other.Ms[CanaryCPU]
	low := min(a, b)
	return low <= 0 || (max(a, b)-low)/low <= canaryMax
}

// SingUntil has the canary sing until a song is as it should be, for so long at the most,
// and gives the last song. A server that has just been started, or that puts away what a
// load wrote, keeps processors busy for a moment, some variants longer than others: that
// is waited for, and only what remains is the machine's. What the hypervisor took is as of
// the first song, since the waiting is no part of a trial.
func SingUntil(ctx context.Context, folder string, most time.Duration, ok func(Canary) bool) (Canary, error) {
	first, err := Sing(ctx, folder)
	last := first
	for err == nil && !ok(last) && time.Since(first.At) < most {
		select {
		case <-ctx.Done():
			return Canary{}, context.Cause(ctx)
		case <-time.After(songPause):
		}
		last, err = Sing(ctx, folder)
	}
	last.busy, last.steal = first.busy, first.steal
	return last, err
}

// Sing does the canary's work, about 100 ms of it, in that folder.
func Sing(ctx context.Context, folder string) (Canary, error) {
	c := Canary{At: time.Now(), Ms: map[string]float64{}, Stall: -1}
	stalled, stallErr := readStall(procRoot)
	c.Ms[CanaryCPU] = singCPU(ctx)
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
	c.busy, c.steal = m.busy, m.steal
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
	f, err := owner.Temporary(folder, "canary")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	// What is written says whose it is: a lab that is killed leaves the file.
	line, err := owner.Line()
	if err != nil {
		return 0, err
	}
	page := make([]byte, syncBytes)
	copy(page, line)
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
	steal := after.steal - before.steal
	if asked := after.busy - before.busy + steal; asked > 0 && steal/asked > stealMax {
		return true, fmt.Sprintf("the hypervisor kept %.1f %% of the processors' time that was asked for, more than %.0f %%", 100*steal/asked, 100*stealMax)
	}
	if !after.AsFast(before) {
		return true, fmt.Sprintf("a fixed piece of work took %.2f ms before and %.2f ms after, a difference of more than %.0f %%", before.Ms[CanaryCPU], after.Ms[CanaryCPU], 100*canaryMax)
	}
	if !before.Calm() {
		return true, fmt.Sprintf("other programs kept the processors busy before the trial: something waited for one during %.0f %% of the canary's time", 100*before.Stall)
	}
	return false, ""
}
