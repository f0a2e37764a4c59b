package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kurabe/internal/engine"
)

// GroupDomain is the only domain that transactions of an instance are numbered in: users
// have no right to another one. So a number is a place in the history of the instance,
// whoever of its members wrote it; two servers that have the same number from the same
// writer have the same history up to it. Numbers grow by one with each transaction, and say
// nothing of bytes.
const GroupDomain = 0

// ParseGTIDs reads a list of positions as the server writes it.
func ParseGTIDs(text string) ([]GTID, error) {
	var list []GTID
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		parts := strings.Split(word, "-")
		if len(parts) != 3 {
			return nil, fmt.Errorf("invalid GTID %q", word)
		}
		domain, err := strconv.ParseUint(parts[0], 10, 32)
		server, serverErr := strconv.ParseUint(parts[1], 10, 32)
		seq, seqErr := strconv.ParseUint(parts[2], 10, 63)
		if err != nil || serverErr != nil || seqErr != nil {
			return nil, fmt.Errorf("invalid GTID %q", word)
		}
		list = append(list, GTID{uint32(domain), uint32(server), seq})
	}
	return list, nil
}

// Newest is the highest of the instance's own, false when there is none.
func Newest(list []GTID) (GTID, bool) {
	var best GTID
	found := false
	for _, g := range list {
		if g.domain == GroupDomain && (!found || g.Seq > best.Seq) {
			best, found = g, true
		}
	}
	return best, found
}

// Sequence is the highest number of a list, 0 of an empty one.
func Sequence(text string) (int64, error) {
	list, err := ParseGTIDs(text)
	g, _ := Newest(list)
	return int64(g.Seq), err
}

// History is what a server says of what it has.
type History struct {
	state   []GTID // newest of each writer, in its binary log
	applied []GTID // where it came from as a follower
}

// has says whether a server has all that another one has whose newest transaction is g.
// One whose log began with a copy has what that copy ended with, without it in its log.
func (h History) has(g GTID) bool {
	for _, s := range h.state {
		if s.domain == g.domain && s.Server == g.Server && s.Seq >= g.Seq {
			return true
		}
	}
	for _, s := range h.applied {
		if s == g {
			return true
		}
	}
	return false
}

func ParseHistory(state, applied string) (History, error) {
	var h History
	var err error
	if h.state, err = ParseGTIDs(state); err == nil {
		h.applied, err = ParseGTIDs(applied)
	}
	return h, err
}

// Refuse says why a server whose newest transaction is g cannot follow one with this
// history.
func (h History) Refuse(g GTID) error {
	if h.has(g) {
		return nil
	}
	return fmt.Errorf("%w: it has transaction %s, and its source has not", engine.ErrRebuild, g)
}

// GTID names a group of events: a transaction, or a statement that is one.
type GTID struct {
	domain, Server uint32
	Seq            uint64
}

// String is as the server writes it.
func (g GTID) String() string {
	return strconv.FormatUint(uint64(g.domain), 10) + "-" + strconv.FormatUint(uint64(g.Server), 10) + "-" + strconv.FormatUint(g.Seq, 10)
}

func (e Event) gtidList() ([]GTID, error) {
	if len(e.body) < gtidListCountBytes {
		return nil, errors.New("a list of transactions is cut short")
	}
	count := int(binary.LittleEndian.Uint32(e.body) & gtidListCountMask)
	rest := e.body[gtidListCountBytes:]
	if count > len(rest)/gtidListEntryBytes {
		return nil, errors.New("a list of transactions is cut short")
	}
	list := make([]GTID, 0, count)
	for range count {
		list = append(list, GTID{
			domain: binary.LittleEndian.Uint32(rest), Server: binary.LittleEndian.Uint32(rest[4:]), Seq: binary.LittleEndian.Uint64(rest[8:]),
		})
		rest = rest[gtidListEntryBytes:]
	}
	return list, nil
}

// Parts of an event that lists transactions: the upper bits of the count are flags.
const (
	gtidListCountBytes = 4
	gtidListCountMask  = 1<<28 - 1
	gtidListEntryBytes = 4 + 4 + 8
)

// Lacks is how many transactions a server with this history lacks of those of another one,
// which has these newest ones of each writer: all after the newest that both have, since
// numbers grow by one, whoever writes. False when they have none in common.
func (h History) Lacks(own []GTID) (int64, bool) {
	last, found := Newest(own)
	if !found {
		return 0, false
	}
	var common uint64
	for _, g := range own {
		if g.domain == GroupDomain && h.has(g) {
			common = max(common, g.Seq)
		}
	}
	other := History{state: own}
	for _, list := range [][]GTID{h.state, h.applied} {
		for _, g := range list {
			if g.domain == GroupDomain && other.has(g) {
				common = max(common, g.Seq)
			}
		}
	}
	if common == 0 {
		return 0, false
	}
	return int64(last.Seq - common), true
}
