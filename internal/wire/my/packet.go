package my

// HeaderBytes is the length of a packet's header, and PayloadMax the longest payload: one of
// this length is followed by another packet of the same message.
const (
	HeaderBytes = 4
	PayloadMax  = 1<<24 - 1
)

// The capabilities of the handshake. Those from bit 32 on are MariaDB's own.
const (
	LongPassword     uint64 = 1 << 0 // of MySQL; a server that clears it is MariaDB
	FoundRows        uint64 = 1 << 1
	LongFlag         uint64 = 1 << 2
	ConnectWithDB    uint64 = 1 << 3
	NoSchema         uint64 = 1 << 4
	Compress         uint64 = 1 << 5
	ODBC             uint64 = 1 << 6
	LocalFiles       uint64 = 1 << 7
	IgnoreSpace      uint64 = 1 << 8
	Protocol41       uint64 = 1 << 9
	Interactive      uint64 = 1 << 10
	SSL              uint64 = 1 << 11
	Transactions     uint64 = 1 << 13
	SecureConnection uint64 = 1 << 15
	MultiStatements  uint64 = 1 << 16
	MultiResults     uint64 = 1 << 17
	PSMultiResults   uint64 = 1 << 18
	PluginAuth       uint64 = 1 << 19
	ConnectAttrs     uint64 = 1 << 20
	AuthLenenc       uint64 = 1 << 21
	SessionTrack     uint64 = 1 << 23
	DeprecateEOF     uint64 = 1 << 24
	BulkOperations   uint64 = 1 << 34
	ExtendedMetadata uint64 = 1 << 35
)

// The commands.
const (
	ComQuit            byte = 0x01
	ComInitDB          byte = 0x02
	ComQuery           byte = 0x03
	ComFieldList       byte = 0x04
	ComCreateDB        byte = 0x05
	ComDropDB          byte = 0x06
	ComRefresh         byte = 0x07
	ComStatistics      byte = 0x09
	ComProcessInfo     byte = 0x0a
	ComProcessKill     byte = 0x0c
	ComPing            byte = 0x0e
	ComChangeUser      byte = 0x11
	ComBinlogDump      byte = 0x12
	ComTableDump       byte = 0x13
	ComRegisterSlave   byte = 0x15
	ComStmtPrepare     byte = 0x16
	ComStmtExecute     byte = 0x17
	ComStmtLongData    byte = 0x18
	ComStmtClose       byte = 0x19
	ComStmtReset       byte = 0x1a
	ComSetOption       byte = 0x1b
	ComStmtFetch       byte = 0x1c
	ComBinlogDumpGTID  byte = 0x1e
	ComResetConnection byte = 0x1f
	ComStmtBulkExecute byte = 0xfa
)

// The flags of a session's status.
const (
	InTransaction  uint16 = 1 << 0
	Autocommit     uint16 = 1 << 1
	MoreResults    uint16 = 1 << 3
	CursorExists   uint16 = 1 << 6
	LastRowSent    uint16 = 1 << 7
	StateChanged   uint16 = 1 << 14
	statusOfAnswer        = MoreResults | CursorExists | LastRowSent | StateChanged
)

// OfSession is what of a status lasts beyond the answer.
func OfSession(status uint16) uint16 { return status &^ statusOfAnswer }

// Header reads the length of a packet's payload and its number. p holds HeaderBytes.
func Header(p []byte) (length int, sequence byte) {
	return int(p[0]) | int(p[1])<<8 | int(p[2])<<16, p[3]
}

// SetHeader writes the header of a packet whose payload follows.
func SetHeader(p []byte, length int, sequence byte) {
	p[0], p[1], p[2], p[3] = byte(length), byte(length>>8), byte(length>>16), sequence
}

// AppendPacket appends a packet with a payload of at most PayloadMax-1 bytes.
func AppendPacket(to []byte, sequence byte, payload ...[]byte) []byte {
	at := len(to)
	to = append(to, 0, 0, 0, 0)
	for _, part := range payload {
		to = append(to, part...)
	}
	SetHeader(to[at:], len(to)-at-HeaderBytes, sequence)
	return to
}
