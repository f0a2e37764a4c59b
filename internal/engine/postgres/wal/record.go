package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Record is what is kept of one record of the log.
type Record struct {
	Begin, End LSN
	Next       LSN // where the one that follows begins
	Resource   byte
	Info       byte
	head       []byte // its first bytes after the header, at most headBytes
}

// The resource managers and kinds of record that are looked into.
const (
	resourceXLOG      = 0
	xlogShutdown      = 0x00 // a checkpoint
	xlogSwitch        = 0x40
	xlogEndOfRecovery = 0x90
	xlogMask          = 0xF0
	resourceXact      = 1
	xactMask          = 0x70
	xactCommit        = 0x00
	xactPrepare       = 0x10
	xactAbort         = 0x20
	xactCommitTwo     = 0x30
	xactAbortTwo      = 0x40
	preparedAtOffset  = 16 // in xl_xact_prepare
)

// ends: the rest of the segment after this record is empty.
func (r Record) ends() bool { return r.Resource == resourceXLOG && r.Info&xlogMask == xlogSwitch }

// postgresEpoch is the server's year 0.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TransactionEnd is when a record's transaction was committed, rolled back or
// prepared, in microseconds; false when the record is something else.
func (r Record) TransactionEnd() (time.Time, bool, error) {
	if r.Resource != resourceXact {
		return time.Time{}, false, nil
	}
	offset := 0
	switch r.Info & xactMask {
	case xactCommit, xactAbort, xactCommitTwo, xactAbortTwo:
	case xactPrepare:
		offset = preparedAtOffset
	default:
		return time.Time{}, false, nil
	}
	data, err := r.mainData()
	if err != nil || len(data) < offset+8 {
		return time.Time{}, false, fmt.Errorf("transaction end at %s cannot be read", r.Begin)
	}
	micros := int64(binary.LittleEndian.Uint64(data[offset:]))
	return postgresEpoch.Add(time.Duration(micros/1e6)*time.Second + time.Duration(micros%1e6)*time.Microsecond), true, nil
}

// mainData skips what may precede a record's own data when it is of no block.
func (r Record) mainData() ([]byte, error) {
	const (
		idShort, idLong, idOrigin, idTopLevel     = 255, 254, 253, 252
		skipShort, skipLong, skipOrigin, skipTopX = 2, 5, 3, 5
	)
	for data := r.head; len(data) > 0; {
		skip := 0
		switch data[0] {
		case idShort:
			skip = skipShort
		case idLong:
			skip = skipLong
		case idOrigin:
			skip = skipOrigin
		case idTopLevel:
			skip = skipTopX
		}
		if skip == 0 || skip > len(data) {
			break
		}
		last := data[0] >= idLong
		if data = data[skip:]; last {
			return data, nil
		}
	}
	return nil, errors.New("the record has no data of its own")
}

// Fork reads the end of a recovery that began a timeline. The record of it and a checkpoint
// have the two timelines at the same place (xl_end_of_recovery, CheckPoint).
func (r Record) Fork(s Segments) (into uint32, f Stretch, ok bool) {
	const timelineAt, previousAt, least = 8, 12, 16
	if r.Resource != resourceXLOG || r.Info&xlogMask != xlogShutdown && r.Info&xlogMask != xlogEndOfRecovery {
		return 0, Stretch{}, false
	}
	data, err := r.mainData()
	if err != nil || len(data) < least {
		return 0, Stretch{}, false
	}
	into, from := binary.LittleEndian.Uint32(data[timelineAt:]), binary.LittleEndian.Uint32(data[previousAt:])
	return into, Stretch{from, s.DropHeader(r.Begin)}, into != from
}
