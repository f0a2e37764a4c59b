package kurabe

import (
	"fmt"
	"strconv"
	"time"
)

// StorageType is one of RDS's storage types, or Kurabe's own "local", which
// throttles nothing.
type StorageType struct {
	Name          string
	MinGiB        int
	MaxGiB        int
	ProvisionIOPS bool // Iops may or must be given
	MinIOPS       int
	MaxIOPS       int
	MaxRatio      int // provisioned IOPS for each GiB at most
}

// StorageTypes are the types offered. Source: the RDS user guide, "Amazon RDS DB
// instance storage" (limits for MariaDB and PostgreSQL).
var StorageTypes = []StorageType{
	{Name: "local", MinGiB: 5, MaxGiB: 65536},
	{Name: "gp2", MinGiB: 5, MaxGiB: 65536},
	{Name: "gp3", MinGiB: 20, MaxGiB: 65536, ProvisionIOPS: true, MinIOPS: 3000, MaxIOPS: 64000, MaxRatio: 500},
	{Name: "io1", MinGiB: 100, MaxGiB: 65536, ProvisionIOPS: true, MinIOPS: 1000, MaxIOPS: 256000, MaxRatio: 50},
	{Name: "io2", MinGiB: 100, MaxGiB: 65536, ProvisionIOPS: true, MinIOPS: 1000, MaxIOPS: 256000, MaxRatio: 1000},
}

// What an instance gets that was created without saying.
const (
	DefaultStorageType = "local"
	DefaultStorageGiB  = 20
)

// The figures of gp2 and gp3 that nobody provisions.
const (
	gp2BurstIOPS      = 3000 // below 1000 GiB; Kurabe keeps no burst balance, see docs
	gp2IOPSPerGiB     = 3
	gp2MaxIOPS        = 16000
	gp2ThroughputMiB  = 250
	GP3BaseIOPS       = 3000
	GP3BaseThroughput = 125 // MiB/s
	GP3StripeGiB      = 400 // from here on IOPS and throughput are provisioned
	gp3StripedIOPS    = 12000
	gp3StripedMiB     = 500
	maxGP3Throughput  = 4000
	ioThroughputMiB   = 4000
)

// FindStorageType returns the type with that name.
func FindStorageType(name string) (StorageType, bool) {
	for _, t := range StorageTypes {
		if t.Name == name {
			return t, true
		}
	}
	return StorageType{}, false
}

// CompleteStorage fills in what the storage type sets by itself (gp3's base
// figures) and validates the rest. Errors name the API's parameter.
func (s *InstanceSettings) CompleteStorage(engine EngineName) error {
	t, ok := FindStorageType(s.StorageType)
	if !ok {
		return Errorf(CodeStorageTypeNotSupported, "StorageType %q is not offered; choose local, gp2, gp3, io1 or io2", s.StorageType)
	}
	if s.StorageGiB < t.MinGiB || s.StorageGiB > t.MaxGiB {
		return Errorf(CodeInvalidParameterValue, WordsStorageSize+". AllocatedStorage must be from %d to %d GiB.", engine, t.Name, s.StorageGiB, t.MinGiB, t.MaxGiB)
	}
	if s.ThroughputMiB != 0 && t.Name != "gp3" {
		return Errorf(CodeInvalidParameterCombo, "You can't specify StorageThroughput for storage type %s", t.Name)
	}
	if !t.ProvisionIOPS {
		if s.IOPS != 0 {
			return Errorf(CodeInvalidParameterCombo, "You can't specify IOPS for storage type %s", t.Name)
		}
		return nil
	}
	if t.Name == "gp3" {
		return s.completeGP3(engine, t)
	}
	if s.IOPS == 0 {
		return Errorf(CodeInvalidParameterCombo, "You must specify Iops for storage type %s", t.Name)
	}
	return s.checkIOPS(engine, t)
}

// completeGP3 applies gp3's rule: below 400 GiB its figures are fixed.
func (s *InstanceSettings) completeGP3(engine EngineName, t StorageType) error {
	base, throughput := GP3BaseIOPS, GP3BaseThroughput
	if s.StorageGiB >= GP3StripeGiB {
		base, throughput = gp3StripedIOPS, gp3StripedMiB
	}
	if s.IOPS == 0 {
		s.IOPS = base
	}
	if s.ThroughputMiB == 0 {
		s.ThroughputMiB = throughput
	}
	if s.StorageGiB < GP3StripeGiB && (s.IOPS != base || s.ThroughputMiB != throughput) {
		return Errorf(CodeInvalidParameterCombo, WordsGP3Small+" gp3 has %d IOPS and %d MiB/s there.", engine, GP3StripeGiB, base, throughput)
	}
	if s.ThroughputMiB < throughput || s.ThroughputMiB > maxGP3Throughput {
		return Errorf(CodeInvalidParameterValue, "StorageThroughput must be from %d to %d MiB/s, not %d", throughput, maxGP3Throughput, s.ThroughputMiB)
	}
	if s.IOPS < base {
		return Errorf(CodeInvalidParameterValue, "Iops must be at least %d for gp3 of %d GiB, not %d", base, s.StorageGiB, s.IOPS)
	}
	return s.checkIOPS(engine, t)
}

func (s *InstanceSettings) checkIOPS(engine EngineName, t StorageType) error {
	if s.IOPS < t.MinIOPS || s.IOPS > t.MaxIOPS {
		return Errorf(CodeInvalidParameterValue, "Iops must be from %d to %d for storage type %s, not %d", t.MinIOPS, t.MaxIOPS, t.Name, s.IOPS)
	}
	if s.IOPS > t.MaxRatio*s.StorageGiB {
		return Errorf(CodeInvalidParameterCombo, WordsIOPSRatio+". It must not exceed %d: %d IOPS need at least %d GiB.", engine, t.Name, float64(s.IOPS)/float64(s.StorageGiB), t.MaxRatio, s.IOPS, (s.IOPS+t.MaxRatio-1)/t.MaxRatio)
	}
	return nil
}

// Limits are the enforced bounds of the settings. The class must exist. IOPS
// bound reads and writes each, as the kernel's throttle counts them apart.
func (s InstanceSettings) Limits() Limits {
	l := Limits{StorageBytes: int64(s.StorageGiB) * GiB}
	if c, ok := FindClass(s.Class); ok && c.Enforced {
		l.CPUs, l.MemoryBytes = float64(c.CPUs), c.MemoryBytes
	}
	var iops, throughputMiB int
	switch s.StorageType {
	case "gp2":
		iops, throughputMiB = min(max(gp2BurstIOPS, gp2IOPSPerGiB*s.StorageGiB), gp2MaxIOPS), gp2ThroughputMiB
	case "gp3":
		iops, throughputMiB = s.IOPS, s.ThroughputMiB
	case "io1", "io2":
		iops, throughputMiB = s.IOPS, ioThroughputMiB
	}
	l.ReadIOPS, l.WriteIOPS = int64(iops), int64(iops)
	l.ReadBytesPerSecond, l.WriteBytesPerSecond = int64(throughputMiB)<<20, int64(throughputMiB)<<20
	return l
}

// WithStorage returns the settings with at least so many GiB. Where gp3 grows into
// the size from which its base figures are higher, it gets those.
func (s InstanceSettings) WithStorage(gib int) InstanceSettings {
	if gib <= s.StorageGiB {
		return s
	}
	if s.StorageType == "gp3" && s.StorageGiB < GP3StripeGiB && gib >= GP3StripeGiB {
		s.IOPS, s.ThroughputMiB = gp3StripedIOPS, gp3StripedMiB
	}
	s.StorageGiB = gib
	return s
}

// Growth of storage. Source: the RDS API reference, ModifyDBInstance,
// AllocatedStorage: "Values that are not at least 10% greater than the existing
// value are rounded up so that they are 10% greater than the current value."
const growthPercentMin = 10

// GrowStorage is the size in GiB that a wish for more than have leads to. A wish
// within the type's bounds is never rounded beyond them.
func (t StorageType) GrowStorage(have, wish int) int {
	if wish <= have || wish > t.MaxGiB {
		return wish
	}
	least := have + (have*growthPercentMin+99)/100
	return max(wish, min(least, t.MaxGiB))
}

// StepKeepRoom is the step of a Failure of kind storage by which a host asks that
// an instance does not run: the host's disk is nearly full. Unlike other failures it
// stands beside Done, for as long as there is no room.
const StepKeepRoom = "keep-room"

// OutOfRoom says why the instance must not run on its host's disk, "" when it may.
func (r *InstanceReport) OutOfRoom() string {
	if r.Failure == nil || r.Failure.Kind != FailureStorage || r.Failure.Step != StepKeepRoom {
		return ""
	}
	return r.Failure.Message
}

// LacksRoom says why an instance that has a server elsewhere is better off there: it must not run
// on this host's disk, or can write nothing there. "" when it can.
func (r *InstanceReport) LacksRoom() string {
	if why := r.OutOfRoom(); why != "" || !r.DiskExhausted {
		return why
	}
	return "The disk of host " + string(r.Host) + " is full"
}

// StorageHistory is what the planner remembers of an instance's storage, mostly for
// the rule of storage autoscaling.
type StorageHistory struct {
	// ScaledGiB is the size that autoscaling has reached, 0 when what the spec wants is
	// in force. The larger of the two holds: storage never shrinks.
	ScaledGiB int `json:"scaledGiB,omitempty"`
	// Scaling: the host is not done yet with a size that autoscaling chose.
	Scaling bool `json:"scaling,omitempty"`
	// ChangedAt is when the size last changed, for whatever reason; zero: never.
	ChangedAt time.Time `json:"changedAt,omitzero"`
	// LowSince is since when at most a tenth is free; zero: more is.
	LowSince time.Time `json:"lowSince,omitzero"`
	// Blocked is the event that said why autoscaling did not act, once for each time
	// that storage is low.
	Blocked string `json:"blocked,omitempty"`
	// Samples are the occupied bytes of the last hour and the newest before it, oldest
	// first; only where autoscaling is on.
	Samples []StorageSample `json:"samples,omitempty"`
	// FullGiB is the size that was exhausted, 0 when none is. DiskFull: the host's disk
	// is nearly full. Either keeps the instance from running.
	FullGiB  int  `json:"fullGiB,omitempty"`
	DiskFull bool `json:"diskFull,omitempty"`
	// HandOverBy is until when a writer whose disk is nearly full may hand over to another host's
	// server, before it is stopped; zero: it need not. HandedOverFrom are those that have done so lately,
	// newest first, and HandedOverAt is when the newest has.
	HandOverBy     time.Time    `json:"leavesBy,omitzero"`
	HandedOverFrom []InstanceID `json:"left,omitempty"`
	HandedOverAt   time.Time    `json:"leftAt,omitzero"`
}

// StorageSample is what an instance occupied at a moment.
type StorageSample struct {
	At        time.Time `json:"at"`
	UsedBytes int64     `json:"usedBytes"`
}

// FormatBytes writes a size for people: "1.5 GiB".
func FormatBytes(n int64) string {
	switch {
	case n >= GiB:
		return strconv.FormatFloat(float64(n)/float64(GiB), 'g', 3, 64) + " GiB"
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func itoa(n int) string { return strconv.Itoa(n) }
