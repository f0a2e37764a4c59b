package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// MultiAZRequest is an ordinary create of an instance in two zones.
func MultiAZRequest(name, engine string) *rds.CreateDBInstanceInput {
	in := Request(name, engine)
	in.MultiAZ = aws.Bool(true)
	return in
}

// NotWhole says what an instance lacks to be one of two zones, "" when it lacks nothing:
// it is available, its standby has every commit and is in another zone, each of two
// folders has one server, of which one follows, and that one alone may follow the other.
func (s *Service) NotWhole(d types.DBInstance) string {
	first, second := aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
	switch status := aws.ToString(d.DBInstanceStatus); {
	case status != "available":
		return "it is " + status
	case !aws.ToBool(d.MultiAZ):
		return "it is not Multi-AZ"
	case second == "" || second == first:
		return fmt.Sprintf("its zones are %q and %q", first, second)
	}
	members := s.Members(aws.ToString(d.DbiResourceId))
	if len(members) != 2 {
		return fmt.Sprintf("it has %d servers' folders", len(members))
	}
	if members[0].Follows() {
		slices.Reverse(members)
	}
	if members[0].Follows() || !members[1].Follows() {
		return "not one of two follows"
	}
	for _, m := range members {
		if _, err := m.Server(); err != nil {
			return err.Error()
		}
	}
	writer, follower := members[0], members[1]
	if admits, err := writer.Admits(); err != nil || !slices.Equal(admits, []int{follower.Number()}) {
		return fmt.Sprintf("the writer %s admits the servers %v, %v", writer.ID, admits, err)
	}
	if admits, err := follower.Admits(); !follower.IsMariaDB() && (err != nil || len(admits) > 0) {
		return fmt.Sprintf("its standby %s admits the servers %v, %v", follower.ID, admits, err)
	}
	return ""
}

// NotSingle says what an instance lacks to be one of one zone again, "" when nothing.
func (s *Service) NotSingle(d types.DBInstance) string {
	id, second := aws.ToString(d.DbiResourceId), aws.ToString(d.SecondaryAvailabilityZone)
	switch status := aws.ToString(d.DBInstanceStatus); {
	case status != "available":
		return "it is " + status
	case aws.ToBool(d.MultiAZ) || second != "":
		return fmt.Sprintf("Multi-AZ is %v, the second zone %q", aws.ToBool(d.MultiAZ), second)
	}
	for what, have := range map[string][]string{"folders": s.Homes(), "assignments": s.Assignments(), "control groups": s.Groups()} {
		others := func(member string) bool { return Owners([]string{member})[0] != id }
		if of := slices.DeleteFunc(have, others); len(of) > 1 {
			return fmt.Sprintf("%s %v", what, of)
		}
	}
	members := s.Members(id)
	if len(members) != 1 {
		return fmt.Sprintf("it has %d servers' folders", len(members))
	}
	if _, err := members[0].Server(); err != nil {
		return err.Error()
	}
	if left, err := members[0].Admits(); err != nil || len(left) > 0 || members[0].Follows() {
		return fmt.Sprintf("it admits the servers %v, %v, and follows: %v", left, err, members[0].Follows())
	}
	return ""
}

// wholeTime is what a standby may take on a busy machine to be cloned, or to rejoin.
const wholeTime = 2 * time.Minute

// WaitWhole waits until the instance lacks nothing to be one of two zones.
func (i *Instance) WaitWhole(t testing.TB) time.Duration {
	t.Helper()
	return i.WaitLike(t, "is whole", i.Service.NotWhole)
}

// WaitSingle waits until the instance lacks nothing to be one of one zone.
func (i *Instance) WaitSingle(t testing.TB) time.Duration {
	t.Helper()
	return i.WaitLike(t, "has one server", i.Service.NotSingle)
}

// WaitLike waits until nothing is missing from what the API says of the instance.
func (i *Instance) WaitLike(t testing.TB, what string, missing func(types.DBInstance) string) time.Duration {
	t.Helper()
	return Wait(t, wholeTime, i.Name+" "+what, func() string {
		d, err := i.describe(t)
		if err != nil {
			return err.Error()
		}
		return missing(d)
	})
}

// Zones are where the writer is and where the standby is, "" while none has every commit.
func (i *Instance) Zones(t testing.TB) (writer, standby string) {
	t.Helper()
	d := i.Describe(t)
	return aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
}

// Pair is the server that writes and the one that does not; there must be two.
func (i *Instance) Pair(t testing.TB) (writer, standby Member) {
	t.Helper()
	login := i.Login(t)
	Wait(t, availableTime, "one of two servers of "+i.Name+" writes", func() string {
		members := i.Service.Members(i.ID)
		if len(members) != 2 {
			return fmt.Sprintf("there are %d", len(members))
		}
		m, err := i.Service.WriterOf(t.Context(), i.ID, login)
		if err != nil {
			return err.Error()
		}
		writer, standby = members[0], members[1]
		if m.ID == standby.ID {
			writer, standby = standby, writer
		}
		return ""
	})
	return writer, standby
}

// AskFailover asks for a failover in order.
func (i *Instance) AskFailover(t testing.TB) error {
	_, err := i.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name), ForceFailover: aws.Bool(true)})
	return err
}

// SetMultiAZ asks for one zone or two.
func (i *Instance) SetMultiAZ(t testing.TB, multi bool) {
	t.Helper()
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MultiAZ = aws.Bool(multi) })
}

// EventsFrom are the messages about the instance from a moment on, oldest first.
func (i *Instance) EventsFrom(t testing.TB, from time.Time) []string {
	t.Helper()
	out, err := i.Service.DescribeEvents(t.Context(), &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbInstance, SourceIdentifier: aws.String(i.Name), StartTime: aws.Time(from),
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range out.Events {
		list = append(list, aws.ToString(e.Message))
	}
	return list
}

// WaitEventsFrom waits until each of the words stands in an event from a moment on.
func (i *Instance) WaitEventsFrom(t testing.TB, from time.Time, words ...string) {
	t.Helper()
	Wait(t, availableTime, "events of "+i.Name, func() string {
		all := strings.ToLower(strings.Join(i.EventsFrom(t, from), "\n"))
		for _, w := range words {
			if !strings.Contains(all, strings.ToLower(w)) {
				return fmt.Sprintf("none tells of %q; there are:\n%s", w, all)
			}
		}
		return ""
	})
}
