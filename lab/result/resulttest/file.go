package resulttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// Options choose the study. The zero value is one like general-log, of 12 blocks.
type Options struct {
	// Alter makes a study with changes: phases idle, during and after, and events.
	Alter bool
	// Blocks is 12 when 0; negative for none, a study that was only begun.
	Blocks int
	// Noise is the standard deviation of the logarithm of a trial's throughput and
	// latency; 0.008 when 0.
	Noise float64
	// Effect is by variant the ratio of its throughput to the baseline's, instead of
	// the built-in one. That of the twin is set by the twin's name.
	Effect map[string]float64
	// Primaries gives the workload "own" a primary metric of its own, beside the study's.
	Primaries bool
	// Clean leaves out the failed, the repeated and the unsettled trial.
	Clean bool
}

const (
	defaultBlocks = 12
	defaultNoise  = 0.008
)

// maker is the state of making one file.
type maker struct {
	o    Options
	rng  *rand.Rand
	file *result.File
	now  time.Time
	// drift is what the machine does over the whole run, log scale.
	drift float64
}

// File returns a file as Read would.
func File(seed uint64, o Options) *result.File {
	if o.Blocks == 0 {
		o.Blocks = defaultBlocks
	}
	if o.Noise == 0 {
		o.Noise = defaultNoise
	}
	m := &maker{o: o, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	m.file = &result.File{Settings: map[string]map[string]string{}}
	if o.Alter {
		m.alter(seed)
	} else {
		m.generalLog(seed)
	}
	m.file.Study.Format = result.Format
	return m.file
}

// Write puts a file at a path that does not exist.
func Write(path string, f *result.File) error {
	w, err := result.Create(path, f.Study)
	if err != nil {
		return err
	}
	defer w.Close() // what was appended is safe without it
	for _, record := range records(f) {
		if err := w.Append(record); err != nil {
			return fmt.Errorf("write a made-up study: %w", err)
		}
	}
	return nil
}

// records are in an order that a run could have written.
func records(f *result.File) []any {
	var all []any
	for _, x := range f.Env {
		all = append(all, x)
	}
	for _, v := range f.Study.Definition.Variants {
		if values, ok := f.Settings[v.Name]; ok {
			all = append(all, result.Settings{Variant: v.Name, Values: values})
		}
	}
	for _, x := range f.Trials {
		all = append(all, x)
	}
	for _, x := range f.Events {
		all = append(all, x)
	}
	for _, x := range f.Ends {
		all = append(all, x)
	}
	return all
}

func (m *maker) begin(seed uint64, s study.Study, engine string) {
	s.Plan.Seed = seed
	m.file.Study = result.Study{
		ID: fmt.Sprintf("%s-%08x", s.Name, uint32(seed)), Created: m.now, Definition: s, Seed: seed,
		Engine: engine, Target: "private", Command: []string{"kurabe", "lab", "run", s.Name},
	}
	m.file.Env = []result.Env{{
		Host: map[string]string{
			"cpu": "Example 4210 @ 2.20GHz", "cores": "2", "memory_bytes": "8589934592", "kernel": "Linux 6.12.48", "architecture": "x86_64",
			"governor": "performance", "file_system": "ext4", "virtualization": "kvm",
		},
		Engine: map[string]string{"name": engine, "version": "10.11.11", "version_full": "10.11.11-MariaDB-0+deb12u1"},
		Lab:    map[string]string{"version": "0.9.0", "binary_sha256": "5f1dd0c4e0a1", "go": "go1.26.8"},
	}}
	if engine == study.Postgres {
		m.file.Env[0].Engine = map[string]string{"name": engine, "version": "15.14", "version_full": "PostgreSQL 15.14 (Debian 15.14-0+deb12u1)"}
	}
}

// effect of a variant on throughput.
func (m *maker) effect(variant string, builtin float64) float64 {
	if x, ok := m.o.Effect[variant]; ok {
		return x
	}
	return builtin
}

// noise is a factor with a median of 1.
func (m *maker) noise() float64 { return math.Exp(m.rng.NormFloat64() * m.o.Noise) }

// blocks calls trial for every cell of every block in a random order and, when trial
// says that it does not count, again at the end of the block.
func (m *maker) blocks(trial func(t *result.Trial) (again bool)) {
	d := m.file.Study.Definition
	for block := 1; block <= m.o.Blocks; block++ {
		var cells []result.Trial
		for _, w := range d.Workloads {
			seed := m.rng.Uint64()
			for _, v := range d.Variants {
				if m.file.Study.Unsupported[v.Name] == "" {
					cells = append(cells, result.Trial{Block: block, Variant: v.Name, Workload: w.Name, Seed: seed})
				}
			}
		}
		m.rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		for i, planned := 0, len(cells); i < len(cells); i++ {
			t := cells[i]
			t.Position, t.Start = i+1, m.now
			m.drift += m.rng.NormFloat64() * 0.003
			if trial(&t) && i < planned {
				cells = append(cells, cells[i])
			}
			m.file.Trials = append(m.file.Trials, t)
			for _, p := range t.Phases {
				m.now = m.now.Add(time.Duration(p.Ms * float64(time.Millisecond)))
			}
			m.now = m.now.Add(400 * time.Millisecond)
		}
	}
	if m.o.Blocks > 0 {
		m.file.Ends = []result.End{{At: m.now, Reason: "blocks"}}
	}
}

// attempts is how often a cell was tried in a block.
func (m *maker) attempts(t *result.Trial) int {
	n := 1
	for i := range m.file.Trials {
		if p := &m.file.Trials[i]; p.Block == t.Block && p.Variant == t.Variant && p.Workload == t.Workload {
			n++
		}
	}
	return n
}

func (m *maker) canary(disturbed bool) map[string][2]float64 {
	slow := 1.0
	if disturbed {
		slow = 1.4
	}
	at := func(ms float64) float64 { return ms * math.Exp(m.drift) * m.noise() }
	return map[string][2]float64{"cpu": {at(20), at(20) * slow}, "fsync": {at(35), at(35) * slow}}
}

// settings are the same for all variants but for what a variant changes and for what
// always differs between two servers.
func (m *maker) settings(common map[string]string, perServer string) {
	for i, v := range m.file.Study.Definition.Variants {
		if m.file.Study.Unsupported[v.Name] != "" {
			continue
		}
		values := map[string]string{}
		for k, x := range common {
			values[k] = x
		}
		for k, x := range v.Parameters {
			values[k] = x
		}
		values["port"], values[perServer] = fmt.Sprint(40000+i), fmt.Sprintf("/var/lib/instances/%d", i)
		m.file.Settings[v.Name] = values
	}
}
