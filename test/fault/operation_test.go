//go:build fault

package fault

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// world is one instance on one service, and what is wanted of it.
type world struct {
	s      *harness.Service
	i      *harness.Instance
	ledger *harness.Ledger
	engine string
	group  string
	server int // before the operation

	class, password, setting string
	port                     int
}

// setting is a dynamic parameter, its two values, and how to ask for it.
var settings = map[string]struct{ name, a, b, ask, shownA, shownB string }{
	"postgres": {"work_mem", "5120", "6144", "SHOW work_mem", "5MB", "6MB"},
	"mariadb":  {"sort_buffer_size", "262144", "524288", "SELECT @@GLOBAL.sort_buffer_size", "262144", "524288"},
}

// operation is something that a user asks for. prepare brings the instance to
// where it can be asked; missing says what is not true yet, "" when it is done.
type operation struct {
	name    string
	prepare func(t *testing.T, w *world)
	ask     func(t *testing.T, w *world) error
	missing func(t *testing.T, w *world) string
}

func (w *world) modify(t *testing.T, change func(*rds.ModifyDBInstanceInput)) error {
	in := &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(w.i.Name), ApplyImmediately: aws.Bool(true)}
	change(in)
	_, err := w.s.ModifyDBInstance(t.Context(), in)
	return err
}

// status asks for the instance; an unreachable service is a status too.
func (w *world) status(t *testing.T) (types.DBInstance, string) {
	out, err := w.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(w.i.Name)})
	if err != nil {
		return types.DBInstance{}, err.Error()
	}
	return out.DBInstances[0], aws.ToString(out.DBInstances[0].DBInstanceStatus)
}

// serves demands status available and the answer of a new session.
func (w *world) serves(t *testing.T, statement, want string) string {
	d, status := w.status(t)
	if status != "available" {
		return "it is " + status
	}
	l := harness.Login{
		Engine: w.engine, Address: aws.ToString(d.Endpoint.Address), Port: int(aws.ToInt32(d.Endpoint.Port)), User: w.i.User,
		Password: w.password, Database: w.i.Database, CAFile: w.s.Data + "/ca.pem",
	}
	session, err := harness.Open(t.Context(), l)
	if err != nil {
		return err.Error()
	}
	defer session.Close()
	rows, err := session.Rows(t.Context(), statement)
	if err != nil {
		return err.Error()
	}
	if len(rows) != 1 || rows[0] != want {
		return fmt.Sprintf("%s: %v, want %s", statement, rows, want)
	}
	return ""
}

func (w *world) answers(t *testing.T) string { return w.serves(t, "SELECT 1", "1") }

// flip changes between two values.
func flip[T comparable](value *T, a, b T) T {
	if *value == a {
		*value = b
	} else {
		*value = a
	}
	return *value
}

// changes are the operations on a living instance.
var changes = []operation{
	{"modify-class", func(_ *testing.T, w *world) { flip(&w.class, harness.Class("micro"), harness.Class("small")) },
		func(t *testing.T, w *world) error {
			return w.modify(t, func(in *rds.ModifyDBInstanceInput) { in.DBInstanceClass = aws.String(w.class) })
		}, classMissing},
	{"modify-port", func(_ *testing.T, w *world) { flip(&w.port, 7001, 7002) },
		func(t *testing.T, w *world) error {
			return w.modify(t, func(in *rds.ModifyDBInstanceInput) { in.DBPortNumber = aws.Int32(int32(w.port)) })
		}, portMissing},
	{"modify-password", func(_ *testing.T, w *world) { flip(&w.password, "First-password-1", "Second-password-2") },
		func(t *testing.T, w *world) error {
			return w.modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(w.password) })
		}, func(t *testing.T, w *world) string { return w.answers(t) }},
	{"modify-parameter", func(_ *testing.T, w *world) { flip(&w.setting, settings[w.engine].a, settings[w.engine].b) },
		askSetting, settingMissing},
	{"reboot", func(t *testing.T, w *world) { w.server = w.i.Server(t) },
		func(t *testing.T, w *world) error {
			_, err := w.s.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(w.i.Name)})
			return err
		}, func(t *testing.T, w *world) string {
			if now := w.s.Servers(w.i.ID); len(now) != 1 || now[0] == w.server {
				return fmt.Sprint("servers ", now)
			}
			return w.answers(t)
		}},
	{"stop", func(t *testing.T, w *world) { bring(t, w, "available") }, askStop, stopMissing},
	{"start", func(t *testing.T, w *world) { bring(t, w, "stopped") }, askStart,
		func(t *testing.T, w *world) string { return w.answers(t) }},
}

func classMissing(t *testing.T, w *world) string {
	d, status := w.status(t)
	if have := aws.ToString(d.DBInstanceClass); have != w.class {
		return status + ", class " + have
	}
	if want, ok := map[string]int64{"db.t3.micro": 1 << 30, "db.t3.small": 2 << 30}[w.class]; ok {
		have := w.s.GroupFile(w.i.ID, "memory.limit_in_bytes") + w.s.GroupFile(w.i.ID, "memory.max")
		if have != strconv.FormatInt(want, 10) {
			return "the memory limit is " + have
		}
	}
	return w.answers(t)
}

func portMissing(t *testing.T, w *world) string {
	d, status := w.status(t)
	if d.Endpoint == nil || int(aws.ToInt32(d.Endpoint.Port)) != w.port {
		return status + ", and the endpoint is another"
	}
	return w.answers(t)
}

func askSetting(t *testing.T, w *world) error {
	_, err := w.s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{
		DBParameterGroupName: aws.String(w.group), Parameters: []types.Parameter{{
			ParameterName: aws.String(settings[w.engine].name), ParameterValue: aws.String(w.setting), ApplyMethod: types.ApplyMethodImmediate,
		}}})
	return err
}

func settingMissing(t *testing.T, w *world) string {
	p := settings[w.engine]
	want := p.shownA
	if w.setting == p.b {
		want = p.shownB
	}
	if missing := w.serves(t, p.ask, want); missing != "" {
		return missing
	}
	d, status := w.status(t)
	for _, g := range d.DBParameterGroups {
		status = aws.ToString(g.ParameterApplyStatus)
	}
	if status != "in-sync" {
		return "the parameters are " + status
	}
	return ""
}

func askStop(t *testing.T, w *world) error {
	_, err := w.s.StopDBInstance(t.Context(), &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String(w.i.Name)})
	return err
}

func askStart(t *testing.T, w *world) error {
	_, err := w.s.StartDBInstance(t.Context(), &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(w.i.Name)})
	return err
}

func stopMissing(t *testing.T, w *world) string {
	if _, status := w.status(t); status != "stopped" {
		return "it is " + status
	}
	if pids := w.s.Processes(w.i.ID); len(pids) > 0 {
		return fmt.Sprint("processes ", pids)
	}
	return ""
}

// bring has the instance run or not.
func bring(t *testing.T, w *world, status string) {
	t.Helper()
	if _, now := w.status(t); now == status {
		return
	}
	ask := askStart
	if status == "stopped" {
		ask = askStop
	}
	if err := ask(t, w); err != nil {
		t.Fatal(err)
	}
	w.i.WaitStatus(t, status)
}

// creation makes the next instance; its name is new each time.
var creation = operation{"create", nil, func(t *testing.T, w *world) error {
	in := harness.Request(w.i.Name, w.engine)
	in.MasterUserPassword = aws.String(w.password)
	out, err := w.s.CreateDBInstance(t.Context(), in)
	if err == nil {
		w.i.ID = aws.ToString(out.DBInstance.DbiResourceId)
	}
	return err
}, func(t *testing.T, w *world) string {
	missing := w.answers(t)
	if d, _ := w.status(t); missing == "" {
		w.i.ID = aws.ToString(d.DbiResourceId)
	}
	return missing
}}

var deletion = operation{"delete", nil, func(t *testing.T, w *world) error {
	_, err := w.s.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(w.i.Name), SkipFinalSnapshot: aws.Bool(true)})
	return err
}, func(t *testing.T, w *world) string {
	_, status := w.status(t)
	if strings.Contains(status, "DBInstanceNotFound") {
		return ""
	}
	return "it is " + status
}}
