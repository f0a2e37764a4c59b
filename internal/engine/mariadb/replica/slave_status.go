package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// slaveColumns are those of SHOW SLAVE STATUS in 10.11, in order. A session of the
// service's has no names of columns, so an answer is checked to be of this form.
var slaveColumns = strings.Fields(`Slave_IO_State Master_Host Master_User Master_Port Connect_Retry Master_Log_File
 Read_Master_Log_Pos Relay_Log_File Relay_Log_Pos Relay_Master_Log_File Slave_IO_Running Slave_SQL_Running Replicate_Do_DB
 Replicate_Ignore_DB Replicate_Do_Table Replicate_Ignore_Table Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table Last_Errno
 Last_Error Skip_Counter Exec_Master_Log_Pos Relay_Log_Space Until_Condition Until_Log_File Until_Log_Pos Master_SSL_Allowed
 Master_SSL_CA_File Master_SSL_CA_Path Master_SSL_Cert Master_SSL_Cipher Master_SSL_Key Seconds_Behind_Master
 Master_SSL_Verify_Server_Cert Last_IO_Errno Last_IO_Error Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids
 Master_Server_Id Master_SSL_Crl Master_SSL_Crlpath Using_Gtid Gtid_IO_Pos Replicate_Do_Domain_Ids Replicate_Ignore_Domain_Ids
 Parallel_Mode SQL_Delay SQL_Remaining_Delay Slave_SQL_Running_State`)

// allRead is what the applying thread says when nothing that was received is left.
const allRead = "Slave has read all relay log; waiting for more updates"

// slaveStatus is what a follower says of itself.
type slaveStatus struct {
	host, user string
	port       int
	usesGTID   bool

	receives   string // Yes, Connecting, Preparing or No
	received   int64  // number of the newest transaction that is here in full
	sourceFile string // of the source's log: how far it was received, transactions in full or not
	sourceAt   int64
	whyNot     reason

	lag         time.Duration // Seconds_Behind_Master, engine.LagUnknown for NULL
	applies     bool
	applyState  string
	relayFile   string
	relayAt     int64
	AppliedFile string // of the source's log: how far it was applied
	AppliedAt   int64
	whyNotApply reason
}

// reason is the newest error of a thread, number 0 for none. Its text can hold a statement.
type reason struct {
	number int
	text   string
}

func (r reason) String() string { return fmt.Sprintf("error %d: %s", r.number, WithoutQuery(r.text)) }

// AskSlave returns nil when a server has nobody to follow.
func AskSlave(ctx context.Context, a *guard.Session) (*slaveStatus, error) {
	rows, err := a.Query(ctx, "SHOW SLAVE STATUS")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if len(rows) > 1 || len(rows[0]) < len(slaveColumns) {
		return nil, errors.New("SHOW SLAVE STATUS answers in an unknown form")
	}
	row := map[string]string{}
	for n, name := range slaveColumns {
		row[name] = rows[0][n]
	}
	return parseSlave(row)
}

// parseSlave reads an answer by its columns. What is not as it must be is no answer.
func parseSlave(row map[string]string) (*slaveStatus, error) {
	s := &slaveStatus{
		host: row["Master_Host"], user: row["Master_User"], receives: row["Slave_IO_Running"], applies: row["Slave_SQL_Running"] == "Yes",
		sourceFile: row["Master_Log_File"], relayFile: row["Relay_Log_File"], AppliedFile: row["Relay_Master_Log_File"], applyState: row["Slave_SQL_Running_State"],
		whyNot: reason{text: row["Last_IO_Error"]}, whyNotApply: reason{text: row["Last_SQL_Error"]},
	}
	if !slices.Contains([]string{"Yes", "No", "Connecting", "Preparing"}, s.receives) || !slices.Contains([]string{"Yes", "No"}, row["Slave_SQL_Running"]) ||
		!slices.Contains([]string{"No", "Slave_Pos", "Current_Pos"}, row["Using_Gtid"]) {
		return nil, errors.New("SHOW SLAVE STATUS answers in an unknown form")
	}
	s.usesGTID = row["Using_Gtid"] == "Slave_Pos"
	s.lag = engine.LagUnknown
	if n, err := strconv.ParseInt(row["Seconds_Behind_Master"], 10, 32); err == nil && n >= 0 { // else it is NULL
		s.lag = time.Duration(n) * time.Second
	}
	var errs []error
	number := func(name string) int64 {
		n, err := strconv.ParseInt(row[name], 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("SHOW SLAVE STATUS: %s is %q", name, row[name]))
		}
		return n
	}
	s.port, s.sourceAt, s.relayAt = int(number("Master_Port")), number("Read_Master_Log_Pos"), number("Relay_Log_Pos")
	s.AppliedAt = number("Exec_Master_Log_Pos")
	s.whyNot.number, s.whyNotApply.number = int(number("Last_IO_Errno")), int(number("Last_SQL_Errno"))
	received, err := binlog.Sequence(row["Gtid_IO_Pos"])
	s.received = received
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return s, nil
}

// of says whether a follower has been told to follow the source of the assignment.
func (s *slaveStatus) of(i engine.Instance) bool {
	source := i.Role.Source
	return source != nil && s.host == source.Address && s.port == source.Port && s.user == role.MemberName(i.Instance) && s.usesGTID
}

// Applied is the number of the newest transaction that was applied.
func Applied(ctx context.Context, a *guard.Session) (int64, error) {
	rows, err := a.Query(ctx, "SELECT @@GLOBAL.gtid_slave_pos")
	if err != nil {
		return 0, err
	}
	return binlog.Sequence(rows[0][0])
}

// WithoutQuery leaves out the statement that the server quotes: it may hold a
// verifier.
func WithoutQuery(text string) string {
	text, _, _ = strings.Cut(text, " Query: ")
	text, _, _ = strings.Cut(text, "Default database: ")
	return text
}
