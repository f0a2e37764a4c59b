package harness

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// answerBytesMost is more than any answer of a single value.
const answerBytesMost = 1 << 20

// askGuard asks a MariaDB by the service's own socket, which no client comes in by
// (ext/kurabe_guard): frames of a length in four bytes and so many bytes. It answers
// with the first value of the first row, "" of a NULL.
func askGuard(ctx context.Context, runDir, statement string) (string, error) {
	body, err := guardAnswer(ctx, runDir, statement)
	if err != nil {
		return "", err
	}
	// A kind; of rows the number of columns, and the length of each value before it.
	const rowsBytes, valueAt = 1 + 4, 1 + 4 + 4
	if len(body) < valueAt || body[0] != 'R' {
		return "", fmt.Errorf("%q has no answer", statement)
	}
	const null = 0xFFFFFFFF
	length := binary.BigEndian.Uint32(body[rowsBytes:])
	switch {
	case length == null:
		return "", nil
	case int(length) > len(body)-valueAt:
		return "", fmt.Errorf("the answer to %q is cut off", statement)
	}
	return string(body[valueAt : valueAt+int(length)]), nil
}

// guardAnswer is what it says to a statement, with rows or without.
func guardAnswer(ctx context.Context, runDir, statement string) ([]byte, error) {
	dir, err := os.Open(runDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var dialer net.Dialer
	// By a descriptor: the path may be longer than an address can be.
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), "admin.sock"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(statement))), statement...)); err != nil {
		return nil, err
	}
	body, err := readFrame(conn)
	if err != nil {
		return nil, err
	}
	const kindBytes, numberBytes = 1, 4 // of an error, before its words
	if len(body) >= kindBytes+numberBytes && body[0] == 'E' {
		return nil, fmt.Errorf("error %d: %s", binary.BigEndian.Uint32(body[kindBytes:]), body[kindBytes+numberBytes:])
	}
	return body, nil
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > answerBytesMost {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
