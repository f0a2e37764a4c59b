package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
)

// attackRounds is how many worlds are planned of which hosts in other hands tell.
const attackRounds = 300

// attackSteps is how often each is planned, of what it was planned before.
const attackSteps = 12

// nonsense fills a value with whatever its type allows.
func nonsense[T any](chance *rand.Rand) (v T) {
	fill(reflect.ValueOf(&v).Elem(), chance, 6)
	return v
}

var oddNumbers = []int64{0, 1, -1, 3, 7, 100, 1 << 40, math.MaxInt64, math.MinInt64}

var oddTexts = []string{"", "db-A", "db-A~2", "db-A~9", "h1", "h2", "postgres", "15.18", "10.0.0.0/24", "0.0.0.0/0", "::/0", "x", "../x", "\x00", "%s%n"}

func fill(v reflect.Value, chance *rand.Rand, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(oddNumbers[chance.IntN(len(oddNumbers))]%1e11, 0)))
	case v.Kind() == reflect.Struct:
		for n := range v.NumField() {
			if v.Type().Field(n).IsExported() {
				fill(v.Field(n), chance, depth)
			}
		}
	case v.Kind() == reflect.Pointer && depth > 0 && chance.IntN(2) == 0:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), chance, depth-1)
	case v.Kind() == reflect.Slice && depth > 0:
		v.Set(reflect.MakeSlice(v.Type(), chance.IntN(4), 4))
		for n := range v.Len() {
			fill(v.Index(n), chance, depth-1)
		}
	case v.Kind() == reflect.Map && depth > 0 && chance.IntN(2) == 0:
		v.Set(reflect.MakeMap(v.Type()))
		for range chance.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, chance, depth-1)
			fill(value, chance, depth-1)
			v.SetMapIndex(key, value)
		}
	case v.Kind() == reflect.String:
		v.SetString(oddTexts[chance.IntN(len(oddTexts))])
	case v.Kind() == reflect.Bool:
		v.SetBool(chance.IntN(2) == 0)
	case v.CanInt():
		v.SetInt(oddNumbers[chance.IntN(len(oddNumbers))])
	case v.CanUint():
		v.SetUint(chance.Uint64())
	case v.CanFloat():
		v.SetFloat([]float64{0, -1, math.NaN(), math.Inf(1), 1e300}[chance.IntN(5)])
	}
}

// What a host reports is whatever its machine says: the planner, which plans for all, ends of
// none of it, wherever that has led it before.
func TestAttackReports(t *testing.T) {
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 0))
	for range attackRounds {
		w := newGroupFleet([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}[chance.IntN(2)], chance.IntN(2) == 0).w
		w.Spec.Now.MultiAZ = w.Spec.Cluster || chance.IntN(2) == 0
		for range attackSteps {
			r, err := plans(w)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			obey(&w, r)
			w.Now = w.Now.Add(time.Duration(chance.IntN(20)) * time.Second)
			for id, a := range w.Members {
				w.Reports[id] = say(*a, chance)
			}
			if a := w.Assignment; a != nil {
				w.Report = say(*a, chance)
				w.Reports[a.Instance] = w.Report
			}
			if chance.IntN(4) == 0 {
				h := nonsense[kurabe.HostReport](chance)
				h.Host = w.Hosts[0].Host
				w.Hosts = append(w.Hosts[:0:0], h)
			} else {
				w.Hosts = newGroupFleet(w.Spec.Engine, w.Spec.Cluster).w.Hosts
			}
		}
	}
}

// obey writes what was planned.
func obey(w *plan.World, r plan.Result) {
	if r.Assignment != nil {
		w.Assignment = r.Assignment
	}
	if r.Status != nil {
		w.Status = r.Status
	}
	if r.Group != nil {
		w.Group = r.Group
	}
	for _, m := range r.Members {
		w.Members[m.Instance] = &m
	}
	for _, id := range r.MembersGone {
		delete(w.Members, id)
	}
	if r.GroupGone {
		w.Group = nil
	}
}

// say is a report of an order, of which more or less may be true.
func say(a kurabe.Assignment, chance *rand.Rand) *kurabe.InstanceReport {
	r := nonsense[kurabe.InstanceReport](chance)
	r.Instance, r.Host = a.Instance, a.Host
	if chance.IntN(4) > 0 {
		r.Generation, r.Boot, r.Failure = a.Generation, a.Boot, nil
	}
	if chance.IntN(2) == 0 {
		r.Done, r.Running = true, true
		if a.Role != nil && r.Role != nil {
			r.Role.Epoch = a.Role.Epoch
		}
	}
	return &r
}

// plans plans a world, and says how that ended if it did not come back.
func plans(w plan.World) (r plan.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return plan.Next(w), nil
}
