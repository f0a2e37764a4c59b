//go:build fault

package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

var tagSerial atomic.Int64

// tags is a large write to the state store.
func tags(i *harness.Instance, value string) *rds.AddTagsToResourceInput {
	in := &rds.AddTagsToResourceInput{ResourceName: aws.String("arn:aws:rds:us-east-1:000000000000:db:" + i.Name)}
	serial := strconv.FormatInt(tagSerial.Add(1), 10)
	for n := range 45 {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("tag-" + strconv.Itoa(n)), Value: aws.String(serial + value)})
	}
	return in
}

// TestFullDiskOfTheAgent: an order is obeyed on a full disk, for which its file has a
// spare. One that cannot be saved, because somebody has removed that, is not obeyed, and
// is as soon as it can be.
func TestFullDiskOfTheAgent(t *testing.T) {
	needRoot(t)
	s := harness.New(t, harness.Options{})
	dir := filepath.Join(s.Data, "assignments")
	mount(t, dir, "1m", 0)
	s.Start(t)
	v := survive(t, s)
	free := fill(t, dir)
	before := v.i.Server(t)
	v.askClass(t, "small")
	v.waitClass(t, "small", before)
	v.session = v.i.Open(t)
	v.ledger.Stop()
	v.ledger.Start(t) // the restart's errors are its own

	free()
	spares, err := filepath.Glob(filepath.Join(dir, ".*.spare"))
	if err != nil || len(spares) != 1 {
		t.Fatalf("spares: %v, %v", spares, err)
	}
	if err := os.Remove(spares[0]); err != nil {
		t.Fatal(err)
	}
	free = fill(t, dir)
	server := v.i.Server(t)
	v.askClass(t, "medium")
	harness.Wait(t, settleTime, "the log tells of the full disk", func() string {
		if d := v.i.Describe(t); aws.ToString(d.DBInstanceStatus) == "available" {
			return "available"
		}
		return ""
	})
	v.check(t)
	if now := v.i.Server(t); now != server {
		t.Errorf("the server was replaced by an order that is not saved")
	}
	free()
	v.waitClass(t, "medium", server)
	v.ledger.Stop()
	v.ledger.Verify(t)
}

func (v *survivor) askClass(t *testing.T, class string) {
	t.Helper()
	v.i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.DBInstanceClass = aws.String(harness.Class(class)) })
}

// waitClass waits until another server than the one before has a class.
func (v *survivor) waitClass(t *testing.T, class string, before int) {
	t.Helper()
	harness.Wait(t, settleTime, "the new class", func() string {
		d := v.i.Describe(t)
		if now := aws.ToString(d.DBInstanceClass); now != harness.Class(class) || aws.ToString(d.DBInstanceStatus) != "available" {
			return now + " " + aws.ToString(d.DBInstanceStatus)
		}
		if v.i.Server(t) == before {
			return "the old server"
		}
		return ""
	})
}

// fillPace is how long a writer may take to meet the end of a disk: its log has room
// in files that it made before.
const fillPace = time.Minute

// TestFullDiskOfTheEngines: a disk that somebody else fills to the last byte takes no
// acknowledged row; the reserve is given up, and engines come back by themselves when
// there is room.
func TestFullDiskOfTheEngines(t *testing.T) {
	needRoot(t)
	s := harness.New(t, harness.Options{})
	mount(t, s.Data, "1800m", 0)
	mount(t, filepath.Join(s.Data, "etcd"), "160m", 0) // its own full disk is another test
	s.Start(t)
	reserve := filepath.Join(s.Data, "reserve")
	held := func(want bool) {
		t.Helper()
		harness.Wait(t, settleTime, fmt.Sprintf("the reserve is there: %v", want), func() string {
			if _, err := os.Lstat(reserve); (err == nil) != want {
				return fmt.Sprint(err)
			}
			return ""
		})
	}
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.Request("engines-"+engine, engine))
		held(true)
		ledger := harness.NewLedger(t, i)
		ledger.Start(t)
		ledger.WaitMore(t, 20)
		free := fill(t, s.Data)
		held(false)
		again := fill(t, filepath.Join(s.Data, "instances")) // what the reserve has given
		meetTheEnd(t, i)
		free()
		again()
		i.WaitStatus(t, "available")
		t.Logf("with room it takes rows %v later", ledger.WaitMore(t, 20))
		held(true)
		ledger.Stop()
		ledger.Verify(t)
		i.Delete(t)
	})
}

// meetTheEnd writes until the engine cannot any more.
func meetTheEnd(t *testing.T, i *harness.Instance) {
	t.Helper()
	create := "CREATE TABLE IF NOT EXISTS big (x longtext)"
	series := "seq_1_to_2000"
	if i.Engine == "postgres" {
		create, series = "CREATE TABLE IF NOT EXISTS big (x text)", "generate_series(1, 2000) n"
	}
	var told error
	harness.Wait(t, fillPace, "the engine meets the end of its disk", func() string {
		session, err := harness.Open(t.Context(), i.Login(t))
		if err != nil {
			told = err
			return ""
		}
		defer session.Close()
		ctx, cancel := context.WithTimeout(t.Context(), settleTime)
		defer cancel()
		for _, statement := range []string{create, "INSERT INTO big SELECT repeat(md5(rand()), 250) FROM " + series} {
			if i.Engine == "postgres" {
				statement = strings.Replace(statement, "md5(rand())", "md5(random()::text)", 1)
			}
			if err := session.Exec(ctx, statement); err != nil {
				told = err
				return ""
			}
		}
		return "it writes on"
	})
	t.Log(told)
}
