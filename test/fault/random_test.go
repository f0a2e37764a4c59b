//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// rounds is how often the service is killed at a random time.
const rounds = 12

// killWithin is when after a request the service dies, at most.
const killWithin = 900 * time.Millisecond

// seed is that of KURABE_FAULT_SEED, or a new one; it is printed.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if given := os.Getenv("KURABE_FAULT_SEED"); given != "" {
		var err error
		if n, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("KURABE_FAULT_SEED: %v", err)
		}
	}
	t.Logf("seed %d; again with: make repro SEED=%d", n, n)
	return n
}

// clerk creates parameter groups without end and remembers which were
// acknowledged: the ledger of the state store.
type clerk struct {
	s      *harness.Service
	family *string
	prefix string
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex // guards acked
	acked []string
}

func hire(t *testing.T, s *harness.Service, prefix string) *clerk {
	t.Helper()
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String("postgres"), DefaultOnly: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &clerk{s: s, family: versions.DBEngineVersions[0].DBParameterGroupFamily, prefix: prefix, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for n := 0; ctx.Err() == nil; n++ {
			if n >= clerkMost {
				c.remove(ctx, fmt.Sprintf("%s-%d", prefix, n-clerkMost))
			}
			c.write(ctx, fmt.Sprintf("%s-%d", prefix, n))
		}
	}()
	t.Cleanup(c.stop)
	return c
}

// clerkMost groups exist at most: an account may have a hundred.
const clerkMost = 40

// remove takes a group back: from here on nobody may rely on it.
func (c *clerk) remove(ctx context.Context, name string) {
	c.mu.Lock()
	c.acked = slices.DeleteFunc(c.acked, func(n string) bool { return n == name })
	c.mu.Unlock()
	for ctx.Err() == nil {
		_, err := c.s.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String(name)})
		if err == nil || strings.Contains(err.Error(), "DBParameterGroupNotFound") {
			return
		}
		harness.Pause(ctx, clerkPause)
	}
}

func (c *clerk) write(ctx context.Context, name string) {
	_, err := c.s.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(name), DBParameterGroupFamily: c.family, Description: aws.String("acknowledged"),
	})
	if err == nil {
		c.mu.Lock()
		c.acked = append(c.acked, name)
		c.mu.Unlock()
	}
	harness.Pause(ctx, clerkPause)
}

// clerkPause keeps the clerk from being the load of a test.
const clerkPause = 20 * time.Millisecond

func (c *clerk) stop() {
	c.cancel()
	<-c.done
}

// verify demands every group that was acknowledged.
func (c *clerk) verify(t *testing.T) {
	t.Helper()
	have := map[string]bool{}
	pages := rds.NewDescribeDBParameterGroupsPaginator(c.s.Client, &rds.DescribeDBParameterGroupsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range page.DBParameterGroups {
			have[aws.ToString(g.DBParameterGroupName)] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.acked {
		if !have[name] {
			t.Errorf("group %s was acknowledged and is lost", name)
		}
	}
	t.Logf("%d acknowledged groups are there", len(c.acked))
}

func TestKillAtRandomTimes(t *testing.T) {
	n := seed(t)
	random := rand.New(rand.NewPCG(n, n))
	s := harness.Start(t, harness.Options{Fault: true})
	k := &killer{s: s, watcher: watch(t, s)}
	for _, engine := range s.Engines(t) {
		w := k.world(engine)
		in := harness.Request(w.i.Name, engine)
		in.MasterUserPassword, in.Port = aws.String(w.password), aws.Int32(7001)
		w.i = s.MustCreate(t, in)
		w.ledger = harness.NewLedger(t, w.i)
		w.ledger.Start(t)
		c := hire(t, s, "clerk-"+engine)
		for round := range rounds {
			k.round(t, random, w, round)
		}
		c.stop()
		w.ledger.Stop()
		w.i.Password = w.password
		w.ledger.Verify(t)
		c.verify(t)
		k.watcher.check(t)
		noOrphans(t, s)
		t.Logf("%s: %d rows", engine, w.ledger.Acked())
	}
}

// askable are the operations of the random rounds: those after which the
// instance runs.
var askable = []string{"modify-class", "modify-port", "modify-password", "reboot"}

// round asks for something, kills the service soon after, perhaps again while it
// starts, and demands that what was asked for comes true.
func (k *killer) round(t *testing.T, random *rand.Rand, w *world, round int) {
	t.Helper()
	name := askable[random.IntN(len(askable))]
	var o operation
	for _, each := range changes {
		if each.name == name {
			o = each
		}
	}
	o.prepare(t, w)
	if err := o.ask(t, w); err != nil {
		t.Fatalf("round %d: %s: %v", round, name, err)
	}
	harness.After(t, time.Duration(random.Int64N(int64(killWithin))))
	k.s.Kill(t)
	if random.IntN(2) == 0 {
		k.s.Launch(t)
		harness.After(t, time.Duration(random.Int64N(int64(killWithin))))
		k.s.Kill(t)
	}
	k.s.Start(t)
	harness.Wait(t, settleTime, fmt.Sprintf("round %d: %s", round, name), func() string { return o.missing(t, w) })
	w.i.Password = w.password
	w.ledger.Follow(t)
	w.ledger.WaitMore(t, 3)
}
