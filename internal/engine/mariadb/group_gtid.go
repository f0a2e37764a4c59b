package mariadb

import (
	"fmt"
	"strconv"
	"strings"

	"kurabe/internal/engine"
)

// groupDomain is the only domain that transactions of an instance are numbered in: users
// have no right to another one. So a number is a place in the history of the instance,
// whoever of its members wrote it; two servers that have the same number from the same
// writer have the same history up to it. Numbers grow by one with each transaction, and say
// nothing of bytes.
const groupDomain = 0

// parseGTIDs reads a list of positions as the server writes it.
func parseGTIDs(text string) ([]gtid, error) {
	var list []gtid
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		parts := strings.Split(word, "-")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is no position of a transaction", word)
		}
		domain, err := strconv.ParseUint(parts[0], 10, 32)
		server, serverErr := strconv.ParseUint(parts[1], 10, 32)
		seq, seqErr := strconv.ParseUint(parts[2], 10, 63)
		if err != nil || serverErr != nil || seqErr != nil {
			return nil, fmt.Errorf("%q is no position of a transaction", word)
		}
		list = append(list, gtid{uint32(domain), uint32(server), seq})
	}
	return list, nil
}

// newest is the highest of the instance's own, false when there is none.
func newest(list []gtid) (gtid, bool) {
	var best gtid
	found := false
	for _, g := range list {
		if g.domain == groupDomain && (!found || g.seq > best.seq) {
			best, found = g, true
		}
	}
	return best, found
}

// sequence is the highest number of a list, 0 of an empty one.
func sequence(text string) (int64, error) {
	list, err := parseGTIDs(text)
	g, _ := newest(list)
	return int64(g.seq), err
}

// history is what a server says of what it has.
type history struct {
	state   []gtid // newest of each writer, in its binary log
	applied []gtid // where it came from as a follower
}

// has says whether a server has all that another one has whose newest transaction is g.
// One whose log began with a copy has what that copy ended with, without it in its log.
func (h history) has(g gtid) bool {
	for _, s := range h.state {
		if s.domain == g.domain && s.server == g.server && s.seq >= g.seq {
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

func parseHistory(state, applied string) (history, error) {
	var h history
	var err error
	if h.state, err = parseGTIDs(state); err == nil {
		h.applied, err = parseGTIDs(applied)
	}
	return h, err
}

// refuse says why a server whose newest transaction is g cannot follow one with this
// history.
func (h history) refuse(g gtid) error {
	if h.has(g) {
		return nil
	}
	return fmt.Errorf("%w: it has transaction %s, and its source has not", engine.ErrRebuild, g)
}
