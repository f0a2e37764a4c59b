package proxy

// PinReason is why a client keeps a connection until its end, or until it resets it.
type PinReason string

// The reasons. RDS's list is the upper bound: what is not here does not pin.
const (
	PinTooLong          PinReason = "statement-too-long"
	PinTemporaryTable   PinReason = "temporary-object"
	PinCursor           PinReason = "cursor-with-hold"
	PinListen           PinReason = "listen"
	PinLoad             PinReason = "load"
	PinSequence         PinReason = "sequence"
	PinAdvisoryLock     PinReason = "advisory-lock"
	PinSQLPrepare       PinReason = "sql-prepare"
	PinSetting          PinReason = "untracked-setting"
	PinTableLock        PinReason = "table-lock"
	PinUserVariable     PinReason = "user-variable"
	PinPreparedProtocol PinReason = "prepared-statement"
	PinLastResult       PinReason = "last-result"
	PinMultiStatement   PinReason = "multiple-statements"
)

// words are the end of RDS's log line for each reason, where RDS has one.
var words = map[PinReason]string{
	PinTooLong:          "The statement is larger than 16,384 bytes.",
	PinTemporaryTable:   "SQL created a temporary object.",
	PinCursor:           "SQL declared a cursor that outlives its transaction.",
	PinListen:           "SQL listens for notifications.",
	PinLoad:             "SQL loaded a library.",
	PinSequence:         "SQL used the session's state of a sequence.",
	PinAdvisoryLock:     "SQL took a lock of the session.",
	PinSQLPrepare:       "SQL prepared a statement by name.",
	PinSetting:          "SQL changed session settings that the proxy doesn't track.",
	PinTableLock:        "SQL locked tables.",
	PinUserVariable:     "SQL set a user variable.",
	PinPreparedProtocol: "A protocol-level prepared statement is open.",
	PinLastResult:       "SQL asks for a value that the statement before left in the session.",
	PinMultiStatement:   "The statement holds several that cannot be told apart.",
}

// Words are the sentence of the log.
func (r PinReason) Words() string { return words[r] }
