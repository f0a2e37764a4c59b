package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/logevents"
)

// exportBed is the servers of an instance on one host, whose logs are exported.
type exportBed struct {
	t     testing.TB
	homes string
	now   time.Time
	n     int // newest line
	store *logevents.Store
	e     *logExports
}

func newExportBed(t testing.TB) *exportBed {
	b := &exportBed{t: t, homes: t.TempDir(), now: time.Now()}
	b.start()
	t.Cleanup(func() { b.store.Close() })
	return b
}

// start is that of the service, after its end without a word.
func (b *exportBed) start() {
	if b.store != nil {
		b.store.Close()
	}
	now := func() time.Time { return b.now }
	var err error
	b.store, err = logevents.Open(logevents.Config{Dir: filepath.Join(b.homes, "events"), GroupBytes: 1 << 30, TotalBytes: 1 << 30, Now: now, Lost: func(string, string, int64, string) {}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.e = newLogExports(&Agent{Config: Config{Homes: b.homes, Now: now, Log: slog.New(slog.DiscardHandler), Events: b.store, LogLost: func(kurabe.InstanceID, string, int64) { b.t.Error("lost") }}})
}

func (b *exportBed) passes() {
	for range 6 {
		b.now = b.now.Add(time.Second)
		for b.e.exportAll(b.t.Context()) {
		}
	}
}

// write has a server write lines.
func (b *exportBed) write(id kurabe.InstanceID, lines int) {
	b.t.Helper()
	dir := filepath.Join(b.homes, string(id), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "postgresql.log.2026-11-28-10"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	for range lines {
		b.n++
		if _, err := fmt.Fprintf(file, "2026-11-28 10:00:00 UTC::@:[1]:LOG:  %d\n", b.n); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *exportBed) want(group, stream string, want ...int) {
	b.t.Helper()
	var got []int
	err := b.store.Walk(b.t.Context(), logevents.Walk{Group: group, Streams: []string{stream}, To: 1 << 60}, func(f logevents.Found) error {
		var n int
		_, err := fmt.Sscanf(string(f.Message[strings.LastIndex(string(f.Message), " "):]), "%d", &n)
		got = append(got, n)
		return err
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Fatalf("%s %s: %v, want %v: %v", group, stream, got, want, err)
	}
}

const exportID = kurabe.InstanceID("db-A")

func exportedServer(number int, duty kurabe.Duty) kurabe.Assignment {
	a := kurabe.Assignment{Instance: exportID.Member(number), Name: "orders", Engine: kurabe.Postgres, Goal: kurabe.GoalRunning, LogTypes: []string{"postgresql"}}
	if duty != "" {
		a.Role = &kurabe.Role{Duty: duty}
	}
	return a
}

// What users see of a Multi-AZ instance goes on with the new primary: each line of a primary once,
// in order, and none of a standby, whenever the service dies.
func TestExportOverAFailover(t *testing.T) {
	for _, c := range []struct{ from, to int }{{1, 2}, {2, 1}} {
		for dies := range 8 {
			t.Run(fmt.Sprint(c, dies), func(t *testing.T) {
				b := newExportBed(t)
				one, two := exportID.Member(c.from), exportID.Member(c.to)
				have := map[kurabe.InstanceID]kurabe.Assignment{}
				step := 0
				obey := func(number int, duty kurabe.Duty) {
					a := exportedServer(number, duty)
					have[a.Instance] = a
					b.e.obey(a)
					b.e.exportAll(b.t.Context()) // at once: obey has woken it
					if step++; step == dies {
						b.start()
						for _, a := range have {
							b.e.obey(a)
						}
					}
				}
				obey(c.from, kurabe.DutyWrite)
				obey(c.to, kurabe.DutyFollow)
				b.write(one, 2) // 1, 2
				b.write(two, 2) // of a standby
				b.passes()
				b.write(one, 1) // 5
				obey(c.from, kurabe.DutyFenced)
				b.write(one, 1) // 6: its end
				b.write(two, 1) // of a standby
				obey(c.to, kurabe.DutyDetached)
				b.write(two, 1) // likewise
				obey(c.to, kurabe.DutyWrite)
				b.write(two, 2) // 9, 10
				obey(c.from, kurabe.DutyFollow)
				b.write(one, 1) // of a standby
				b.passes()
				b.write(two, 1) // 12
				b.passes()
				b.want("/aws/rds/instance/orders/postgresql", "orders.0", 1, 2, 5, 6, 9, 10, 12)
			})
		}
	}
}

// Each server of a DB cluster has a stream of its own.
func TestExportOfACluster(t *testing.T) {
	b := newExportBed(t)
	for n, duty := range []kurabe.Duty{kurabe.DutyWrite, kurabe.DutyFollow} {
		a := exportedServer(n+1, duty)
		a.Cluster = true
		b.e.obey(a)
		b.write(a.Instance, 2)
	}
	b.passes()
	b.want("/aws/rds/cluster/orders/postgresql", "orders-instance-1.0", 1, 2)
	b.want("/aws/rds/cluster/orders/postgresql", "orders-instance-2.0", 3, 4)
}

// A renamed instance goes on in another group, and back, without a repetition.
func TestExportOfARenamedInstance(t *testing.T) {
	b := newExportBed(t)
	a := exportedServer(1, "")
	for _, name := range []string{"orders", "sales", "orders"} {
		a.Name = name
		b.e.obey(a)
		b.e.exportAll(t.Context())
		b.write(a.Instance, 2)
		b.passes()
		b.start()
		b.e.obey(a)
	}
	b.want("/aws/rds/instance/orders/postgresql", "orders.0", 1, 2, 5, 6)
	b.want("/aws/rds/instance/sales/postgresql", "sales.0", 3, 4)
}

// An export that is ended and begun again lacks what is between, also when the service was not there.
func TestExportEnds(t *testing.T) {
	for _, dies := range []bool{false, true} {
		b := newExportBed(t)
		on := exportedServer(1, "")
		off := on
		off.LogTypes = nil
		b.e.obey(on)
		b.write(on.Instance, 2)
		if b.passes(); dies {
			b.start()
		}
		b.e.obey(off)
		b.write(on.Instance, 2)
		b.passes()
		b.e.obey(on)
		b.write(on.Instance, 1)
		b.passes()
		b.want("/aws/rds/instance/orders/postgresql", "orders.0", 1, 2, 5)
	}
}

// What a server has left when its folder is to be removed is exported before.
func TestExportFinishes(t *testing.T) {
	b := newExportBed(t)
	a := exportedServer(1, "")
	b.e.obey(a)
	b.write(a.Instance, 3)
	if !b.e.unread(a.Instance)("postgresql.log.2026-11-28-10") {
		t.Error("a file is not unread")
	}
	if err := b.e.finish(a); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.homes, string(a.Instance))); err != nil {
		t.Fatal(err)
	}
	b.passes()
	b.e.retire(a.Instance)
	b.passes()
	b.want("/aws/rds/instance/orders/postgresql", "orders.0", 1, 2, 3)
	if mark := b.store.Mark("/aws/rds/instance/orders/postgresql", "orders.0"); string(mark) != "{}" {
		t.Errorf("mark %s", mark)
	}
}

// BenchmarkExport is that of a log of statements into the store, and reports what 20 MB/s of it take.
func BenchmarkExport(b *testing.B) {
	bed := newExportBed(b)
	dir := filepath.Join(bed.homes, string(exportID), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	bed.e.obey(exportedServer(1, ""))
	bed.e.exportAll(b.Context())
	file, err := os.Create(filepath.Join(dir, "postgresql.log.2026-11-28-10"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	const size = 20 << 20
	cpu := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var used time.Duration
	b.SetBytes(size)
	for b.Loop() {
		b.StopTimer()
		var text []byte
		for len(text) < size {
			bed.n++
			text = fmt.Appendf(text, "2026-11-28 10:%02d:%02d UTC:127.0.0.1(55%d):app@shop:[%d]:LOG:  execute stmt_%d: UPDATE accounts SET balance = balance + %d WHERE id = %d\n",
				bed.n/60000%60, bed.n/1000%60, bed.n%1000, bed.n%97, bed.n%7, bed.n*7919%5000, bed.n*104729%1000000)
		}
		if _, err := file.Write(text); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		before := cpu()
		for more := true; more; {
			more = bed.e.exportAll(b.Context())
		}
		used += cpu() - before
	}
	b.ReportMetric(used.Seconds()/float64(b.N), "cores@20MB/s")
}
